import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { splitIntoParts } from '#api/import/send/split-file.ts'
import { hashKey } from '#shared/access/key.ts'
import type { StepJob } from '#shared/domain/job-payloads.ts'
import { storeChunk } from '#shared/vault/bulk/store-chunk.ts'
import { jobsOf } from '#test/support/checks/observe-jobs.ts'
import { countTokens } from '#shared/core/tokens.ts'
import {
  buildKey,
  createTestClient,
  startTestApi,
  startJobWorkers,
} from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { compileCache } from '#test/support/start/compile-cache.ts'
import { listen } from '#test/support/start/listen.ts'

const backend = await createTestBackend(t)
await startJobWorkers(backend, 'upload', 'import')
const { base } = await startTestApi(t, backend)
const dir = t.testdir({})

type Ended = { code: number | null; out: string; err: string }

const begin = (args: string[], { input = '', env = {} } = {}) => {
  const child = spawn(process.execPath, ['scripts/clients/upload-file.ts', ...args], {
    env: { PATH: process.env['PATH']!, ...compileCache, DATA_DIR: dir, ...env },
  })
  let [out, err] = ['', '']
  child.stdout.setEncoding('utf8').on('data', text => (out += text))
  child.stderr.setEncoding('utf8').on('data', text => (err += text))
  child.stdin.end(input)
  const ended = new Promise<Ended>(resolve =>
    child.once('close', code => resolve({ code, out, err })),
  )
  return { child, ended, heard: () => err }
}
const run = (args: string[], options?: Parameters<typeof begin>[1]): Promise<Ended> =>
  begin(args, options).ended

const newVault = async () => {
  const key = await buildKey(backend)
  const texts = async (): Promise<string[]> =>
    (await createTestClient(base, key).get('/v1/memory/export')).body.map(
      ({ content }: { content: string }) => content,
    )
  return { key, texts, at: ['--base-url', base, '--key', key] }
}
let files = 0
const written = (text: string): string => {
  const path = join(dir, `file-${files++}.jsonl`)
  writeFileSync(path, text)
  return path
}
const line = (n: number): string =>
  JSON.stringify({ content: `line ${n}`, timestamp: 1_700_000_000_000 + n })
const linesTo = (count: number): string[] => Array.from({ length: count }, (_, n) => line(n + 1))

/** Passes requests on to the service, but for those `instead` answers; some answers get lost. */
async function between(
  t: Test,
  instead: (request: IncomingMessage, response: ServerResponse) => boolean,
  loses: (request: IncomingMessage) => boolean = () => false,
): Promise<string> {
  const server = createServer((request, response) => {
    if (instead(request, response)) return request.resume()
    const chunks: Buffer[] = []
    request.on('data', chunk => chunks.push(chunk))
    request.on('end', () => {
      void fetch(base + request.url!, {
        method: request.method!,
        headers: Object.entries(request.headers)
          .filter(([name]) => !/^(host|connection|content-length|transfer-encoding)$/.test(name))
          .map(([name, value]) => [name, String(value)] as [string, string]),
        ...(chunks.length > 0 && { body: Buffer.concat(chunks) }),
      }).then(async answer => {
        const text = await answer.text()
        if (loses(request)) response.destroy()
        else response.writeHead(answer.status).end(text)
      })
    })
  })
  return listen(t, server)
}

t.test('a file is cut into parts that keep the limits and lose no line', async t => {
  const text = ['\uFEFFa', '', 'bb', 'toolong', 'ccc', 'd', '  ', 'e'].join('\r\n')
  const limits = { linesMax: 2, bytesMax: 6, lineBytesMax: 4 }
  const read = async (from = { index: 0, offset: 0, line: 0 }) => {
    const parts = []
    const rest = Buffer.from(text).subarray(from.offset)
    for await (const part of splitIntoParts(
      (async function* () {
        yield rest
      })(),
      limits,
      from,
    )) {
      parts.push({ ...part, body: Buffer.from(part.body).toString() })
    }
    return parts
  }
  const parts = await read()
  t.match(parts, [
    { index: 0, body: 'a\nbb\n', lineNumbers: [1, 3], oversizedLines: [4], endLine: 4 },
    { index: 1, body: 'ccc\nd\n', lineNumbers: [5, 6], oversizedLines: [] },
    { index: 2, body: 'e\n', lineNumbers: [8] },
  ])
  for (const { index, endOffset, endLine } of parts) {
    const rest = await read({ index: index + 1, offset: endOffset, line: endLine })
    t.same(rest, parts.slice(index + 1), 'going on after any part')
  }
})

t.test('0: a whole file, in parts; again it adds nothing', async t => {
  const { texts, at } = await newVault()
  const file = written(linesTo(250).join('\n'))
  const first = await run([file, ...at, '--part-lines', '100'])
  t.equal(first.code, 0, first.err)
  t.equal(first.out, 'complete: 250 lines · 250 stored\n')
  t.equal(first.err, '', 'no progress where there is no terminal')
  t.equal((await texts()).length, 250)
  t.notOk(existsSync(`${file}.upload-state.json`))

  const again = await run([file, ...at, '--json'])
  t.equal(again.code, 0, again.err)
  t.match(JSON.parse(again.out), { status: 'complete', lines: 250, stored: 0, skipped: 250 })
})

t.test('0: standard input, a session, the address that npm start left', async t => {
  const { key } = await newVault()
  writeFileSync(join(dir, 'credentials.json'), JSON.stringify({ base_url: base, memory_key: key }))
  const { code, out, err } = await run(['-', '--session', 'Zürich 🚲', '--json'], {
    input: line(1),
  })
  t.equal(code, 0, err)
  t.match(JSON.parse(out), { status: 'complete', stored: 1 })
  const { body } = await createTestClient(base, key).get('/v1/memory/export')
  t.match(body, [{ content: 'line 1', session_id: 'Zürich 🚲' }])
})

t.test('0: an export is restored elsewhere', async t => {
  const [one, two] = [await newVault(), await newVault()]
  await run([written(linesTo(30).join('\n')), ...one.at])
  const response = await fetch(`${base}/v1/memory/export`, {
    headers: { authorization: `Bearer ${one.key}` },
  })
  const file = written(await response.text())
  const { code, out, err } = await run([file, '--import', ...two.at, '--part-lines', '8'])
  t.equal(code, 0, err)
  t.equal(out, 'complete: 30 lines · 30 stored\n')
  t.same(await two.texts(), await one.texts())
  const replaced = await run([file, '--import', '--on-conflict', 'replace', ...two.at, '--json'])
  t.match(JSON.parse(replaced.out), { replaced: 30, stored: 0 })
})

t.test('1: faulty lines are named by their place in the file', async t => {
  const { at } = await newVault()
  const lines = linesTo(25)
  lines[3] = 'nonsense'
  lines[12] = ''
  lines[17] = '{"content":""}'
  lines[21] = JSON.stringify({ content: 'x'.repeat(256 * 1024) })
  const { code, out, err } = await run([written(lines.join('\n')), ...at, '--part-lines', '10'])
  t.equal(code, 1, err)
  t.match(
    out,
    /^line 4: not valid JSON\nline 18: content .*\nline 22: longer .*\npartial: 24 lines · 21 stored · 3 faulty\n$/,
  )
})

t.test('1: a part of which no line is good does not end the upload', async t => {
  const { at, texts } = await newVault()
  const lines = linesTo(30)
  lines.fill('nonsense', 10, 20)
  const { code, out, err } = await run([written(lines.join('\n')), ...at, '--part-lines', '10'])
  t.equal(code, 1, err)
  t.match(out, /^line 11: not valid JSON\n[^]*partial: 30 lines · 20 stored · 10 faulty\n$/)
  t.equal((await texts()).length, 20)
})

t.test('2: wrong options', async t => {
  const { at } = await newVault()
  for (const [args, words] of [
    [[...at], /name one file/],
    [['a', 'b', ...at], /name one file/],
    [['a', ...at, '--part-lines', '10001'], /part-lines/],
    [['a', ...at, '--nonsense'], /nonsense/],
    [['a', ...at, '--on-conflict', 'replace'], /--import/],
    [['a', ...at, '--import', '--session', 'x'], /--session/],
    [['a', '--base-url', 'nowhere'], /http\(s\)[^]*--key/],
    [[join(dir, 'absent'), ...at], /no such file/],
  ] as [string[], RegExp][]) {
    const { code, err } = await run(args)
    t.equal(code, 2, `${args.join(' ')}: ${err}`)
    t.match(err, words)
  }
  t.match(await run(['--help']), { code: 0, out: /^Usage: [^]*Exit code/ })
})

t.test('3: the service says no; what was sent stays, and it goes on from there', async t => {
  const { key, texts } = await newVault()
  let sent = 0
  let open = false
  const gate = await between(t, ({ url = '' }, response) => {
    if (open || !url.includes('upload') || ++sent <= 2) return false
    response.writeHead(402).end(JSON.stringify({ error: 'No card', hint: 'Add one' }))
    return true
  })
  const args = [
    written(linesTo(50).join('\n')),
    '--base-url',
    gate,
    '--key',
    key,
    '--part-lines',
    '10',
  ]
  const stopped = await run(args)
  t.equal(stopped.code, 3, stopped.err)
  t.match(stopped.out, /^stopped: 20 lines · 20 stored/)
  t.match(stopped.err, /402: No card\nAdd one\nRun it again to go on/)
  t.equal((await texts()).length, 20)
  const state = readFileSync(`${args[0]}.upload-state.json`, 'utf8')
  t.notOk(state.includes(key), 'no key in the state')

  open = true
  const rest = await run(args)
  t.equal(rest.code, 0, rest.err)
  t.match(rest.err, /Going on after line 20/)
  t.equal(rest.out, 'complete: 50 lines · 50 stored\n')
  t.same(
    await texts(),
    linesTo(50).map(text => JSON.parse(text).content),
  )
})

t.test('0: it waits as it is told, and does nothing twice when an answer is lost', async t => {
  const { key, texts } = await newVault()
  let limited = 0
  let lost = 0
  const gate = await between(
    t,
    ({ url = '' }, response) => {
      if (!url.includes('upload') || limited++ > 0) return false
      response.writeHead(429, { 'retry-after': '1' }).end('{"error":"Slow down"}')
      return true
    },
    ({ url = '' }) => url.includes('upload') && lost++ === 0,
  )
  const begun = Date.now()
  const { code, err } = await run([written(line(1)), '--base-url', gate, '--key', key])
  t.equal(code, 0, err)
  t.match(err, /429: Slow down; again in 1 s[^]*No answer: [^]*again in/)
  t.ok(Date.now() - begun >= 1_000)
  t.equal(lost, 2)
  t.same(await texts(), ['line 1'])
  const { rows } = await backend.postgres.query('select kind from operations where key_hash = $1', [
    hashKey(backend.config.keyPepper, key),
  ])
  t.same(rows, [{ kind: 'upload' }])
})

t.test('killed in the middle it goes on, and nothing is lost or doubled', async t => {
  const { key, texts, at } = await newVault()
  const lines = Array.from({ length: 60 }, (_, n) => JSON.stringify({ content: `memory ${n}` }))
  const file = written(lines.join('\n'))
  const { child, ended } = begin([file, ...at, '--part-lines', '5'])
  await waitUntil('the first parts are through', async () => (await texts()).length >= 10)
  child.kill('SIGKILL')
  await ended
  const rest = await run([file, ...at, '--part-lines', '5'])
  t.equal(rest.code, 0, rest.err)
  t.match(rest.out, /^complete: 60 lines/)
  t.equal((await texts()).length, 60)
  t.equal(new Set(await texts()).size, 60)
  const { rows } = await backend.postgres.query(
    `select count(*)::int as parts, sum(memory_tokens)::int as tokens
     from usage_events where key_hash = $1 and memory_tokens > 0`,
    [hashKey(backend.config.keyPepper, key)],
  )
  const tokens = lines.reduce((sum, text) => sum + countTokens(JSON.parse(text).content), 0)
  t.same(rows, [{ parts: 12, tokens }], 'no part was billed twice')
})

t.test('3: stopped with Ctrl-C it says how far it is, and goes on from there', async t => {
  const { key, texts } = await newVault()
  const file = written(linesTo(40).join('\n'))
  let [sent, open] = [0, false]
  // The third part is not answered at first: there is something left to stop.
  const gate = await between(t, ({ url = '' }) => !open && url.includes('upload') && ++sent > 2)
  const args = [file, '--base-url', gate, '--key', key, '--part-lines', '5']
  const { child, ended, heard } = begin(args)
  await waitUntil('the third part is sent', () => sent > 2)
  child.kill('SIGINT')
  const { code, out, err } = await ended
  t.equal(code, 3, heard())
  t.match(out, /^stopped: \d+ lines/)
  t.match(err, /Stopped\nRun it again to go on\.\n$/)
  open = true
  const rest = await run(args)
  t.equal(rest.code, 0, rest.err)
  t.match(rest.err, /Going on after line \d+/)
  t.match(rest.out, /^complete: 40 lines/)
  t.equal(new Set(await texts()).size, 40)
  t.equal((await texts()).length, 40)
})

t.test('3: a part that was cancelled is sent anew by the next run', async t => {
  const service = await createTestBackend(t)
  const { base: url } = await startTestApi(t, service)
  const key = await buildKey(service)
  const file = written(linesTo(2).join('\n'))
  const args = [file, '--base-url', url, '--key', key, '--part-lines', '1']
  const { ended, heard } = begin(args)
  const jobs = () => jobsOf<StepJob>(service, 'upload')
  await waitUntil('the first part is accepted', async () => (await jobs()).length === 1)
  const [first] = await jobs()
  await storeChunk(service, first!.data)
  await waitUntil('the second part is accepted', async () => (await jobs()).length === 2)
  const second = (await jobs()).find(({ data }) => data.operation !== first!.data.operation)
  await createTestClient(url, key).send('DELETE', `/v1/operations/${second!.data.operation}`)
  const { code, err } = await ended
  t.equal(code, 3, heard())
  t.match(err, /Operation [^ ]+ was cancelled\nRun it again to go on/)

  await startJobWorkers(service, 'upload')
  const rest = await run(args)
  t.equal(rest.code, 0, rest.err)
  t.match(rest.err, /Going on after line 1/)
  t.equal(rest.out, 'complete: 2 lines · 2 stored\n')
})

t.test('0: with another --part-lines it goes on after a stop in the middle of a part', async t => {
  const { key, texts } = await newVault()
  let [sent, open] = [0, false]
  // The second part is accepted; what became of it is not told.
  const gate = await between(t, ({ url = '' }, response) => {
    if (url.includes('upload')) sent++
    if (open || sent < 2 || url.includes('upload')) return false
    response.writeHead(402).end('{"error":"No card"}')
    return true
  })
  const args = [written(linesTo(30).join('\n')), '--base-url', gate, '--key', key, '--part-lines']
  const stopped = await run([...args, '10'])
  t.equal(stopped.code, 3, stopped.err)
  t.match(stopped.out, /^stopped: 10 lines/)
  open = true
  const rest = await run([...args, '7'])
  t.equal(rest.code, 0, rest.err)
  t.match(rest.out, /^complete: 30 lines/)
  t.equal(new Set(await texts()).size, 30)
  t.equal((await texts()).length, 30)
})

t.test('0: where the position cannot be saved the lines arrive all the same', async t => {
  const { texts, at } = await newVault()
  const file = written(linesTo(4).join('\n'))
  mkdirSync(`${file}.upload-state.json.new`)
  const { code, out, err } = await run([file, ...at, '--part-lines', '2', '--json'])
  t.equal(code, 0, err)
  t.match(JSON.parse(out), { status: 'complete', lines: 4, stored: 4 })
  t.equal(err.match(/The position cannot be saved: EISDIR/g)?.length, 1)
  t.equal((await texts()).length, 4)
})

t.test('1: a file of nothing but lines that are too long', async t => {
  const { texts, at } = await newVault()
  const long = JSON.stringify({ content: 'x'.repeat(300_000) })
  const { code, out, err } = await run([written(`${long}\n${long}`), ...at])
  t.equal(code, 1, err)
  t.match(out, /^line 1: longer than the service takes\nline 2: .*\npartial: 2 lines/)
  t.same(await texts(), [])
})
