import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { startJobWorkers, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import {
  chatgptConversation,
  claudeConversation,
  geminiRecords,
  langgraphExport,
  lettaFile,
  mem0Page,
  zepGraph,
  zipOf,
} from '#test/support/samples/foreign-exports.ts'
import { docxOf, pdfOf } from '#test/support/start/documents.ts'
import { createKeyedClient, exportLines } from '#test/support/start/memory-file.ts'
import { runScript } from '#test/support/start/run-script.ts'
import { listen } from '#test/support/start/listen.ts'

const backend = await createTestBackend(t)
await startJobWorkers(backend, 'upload', 'import')
const { base } = await startTestApi(t, backend)
const dir = t.testdir({ empty: {} })

const run = (args: readonly string[]) =>
  runScript('scripts/clients/import-file.ts', args, { DATA_DIR: join(dir, 'empty') })
const written = (name: string, content: string | Uint8Array): string => {
  writeFileSync(join(dir, name), content)
  return join(dir, name)
}
const newVault = async () => {
  const client = await createKeyedClient(backend, base)
  return { client, at: ['--base-url', base, '--key', client.key] }
}

t.test(
  'an archive of ChatGPT arrives with times, roles and titles; again it adds nothing',
  async t => {
    const { client, at } = await newVault()
    const file = written(
      'chatgpt.zip',
      zipOf({
        'chat.html': '<html>',
        'user.json': '{}',
        'conversations-000.json': JSON.stringify([chatgptConversation()]),
        'conversations-001.json': JSON.stringify([chatgptConversation('c-2', 'Second')]),
      }),
    )
    const dry = await run(['--from', 'chatgpt', file, '--dry-run'])
    t.equal(dry.code, 0, dry.err)
    t.match(dry.out, /^ChatGPT: 8 memories of 2 conversations from 2025-02-01 to 2025-02-01\n/)
    t.match(dry.out, /left out: messages of branches .*: 2\n[^]*never carried over from ChatGPT: /)
    t.match(dry.out, /dry run: nothing was sent\n$/)
    t.same(await exportLines(client), [])

    const first = await run(['--from', 'chatgpt', file, ...at])
    t.equal(first.code, 0, first.err)
    // Three messages of the two conversations are the same to the millisecond.
    t.match(first.out, /complete: 8 memories · 5 stored · 3 already there\n$/)
    t.equal(first.err, '', 'no bar where there is no terminal')
    const stored = await exportLines(client)
    t.match(
      stored.map(({ role, content, timestamp }) => [role, content, timestamp]),
      [
        ['user', 'I am a baker in Graz', Date.parse('2025-02-01T10:00:00Z')],
        ['user', 'Be brief', Date.parse('2025-02-01T10:00:00.001Z')],
        ['user', 'What shall I call my kitten?', Date.parse('2025-02-01T10:00:01.500Z')],
        ['assistant', 'Ada suits her', Date.parse('2025-02-01T10:00:09Z')],
        ['user', 'Then Ada it is', Date.parse('2025-02-01T10:00:09.001Z')],
      ],
    )
    t.match(stored[2]!.metadata, { source: 'chatgpt', title: 'Kitten names' })
    const found = await client.post('/v1/memory/search', {
      query: 'What is the kitten called?',
      limit: 5,
      metadata: { source: 'chatgpt' },
    })
    t.match(JSON.stringify(found.body), /Ada/)

    const again = await run(['--from', 'chatgpt', file, ...at, '--json'])
    t.match(JSON.parse(again.out), { status: 'complete', memories: 8, stored: 0, skipped: 8 })
    t.notOk(existsSync(`${file}.import-state.json`))
  },
)

t.test('each of the other products, twice', async t => {
  const exports: [string, string, unknown, number][] = [
    ['claude', 'conversations.json', [claudeConversation()], 3],
    ['gemini', 'MyActivity.json', geminiRecords(), 2],
    ['mem0', 'mem0.json', mem0Page(), 1],
    ['zep', 'zep.json', zepGraph(), 3],
    ['langgraph', 'store.json', langgraphExport(), 4],
    ['letta', 'sam.af', lettaFile(), 4],
  ]
  for (const [from, name, value, count] of exports) {
    const { client, at } = await newVault()
    const file = written(name, JSON.stringify(value))
    for (const stored of [count, 0]) {
      const { code, out, err } = await run(['--from', from, file, ...at, '--json'])
      t.equal(code, 0, err)
      t.match(JSON.parse(out), { status: 'complete', memories: count, stored }, from)
    }
    const lines = await exportLines(client)
    t.equal(lines.length, count)
    t.ok(lines.every(({ metadata }) => metadata?.['source'] === from))
  }
})

t.test('with the key of the account each of its users moves in and out by an own id', async t => {
  const { client, at } = await newVault()
  const file = written('mem0-of-user.json', JSON.stringify(mem0Page()))
  for (const user of ['jürgen', 'user-18']) {
    const { code, out, err } = await run(['--from', 'mem0', file, ...at, '--user', user, '--json'])
    t.equal(code, 0, err)
    t.match(JSON.parse(out), { status: 'complete', stored: 1 })
  }
  t.same(await exportLines(client), [], 'the vault of the account itself got nothing')
  const folder = join(dir, 'of-juergen')
  const left = await runScript(
    'scripts/clients/export-file.ts',
    ['--to', 'okf', folder, ...at, '--user', 'jürgen'],
    {},
  )
  t.match(left, { code: 0, out: /^complete: 1 documents/ })
})

t.test('a bundle of documents from elsewhere, into a session', async t => {
  const { client, at } = await newVault()
  const folder = join(dir, 'bundle')
  const files = {
    'index.md': '# Tables',
    'tables/orders.md': [
      '---',
      'type: Table # a comment',
      'title: "Customer: orders"',
      'description: One row per order.',
      'tags: [sales, orders]',
      'generated: { by: agent/1, at: 2026-05-28T14:30:00Z }',
      'sources:',
      '  - id: ga4',
      '    resource: https://example.com/x',
      'verified:',
      '  by: human:a',
      '---',
      '# Schema',
      '',
      'order_id is unique.',
    ].join('\r\n'),
    'notes/plain.md': 'Deliver on Tuesdays.',
    '.git/x.md': 'hidden',
  }
  writeFileSync(`${folder}.zip`, zipOf(files))
  const args = ['--from', 'okf', `${folder}.zip`, ...at, '--session', 'work']
  const { code, out, err } = await run(args)
  t.equal(code, 0, err)
  t.match(out, /left out: front matter: documents without any: 1\n/)
  const lines = await exportLines(client)
  t.same(lines.map(({ content }) => content.replaceAll('\r', '')).toSorted(), [
    'Customer: orders\n\nOne row per order.\n\n# Schema\n\norder_id is unique.',
    'Deliver on Tuesdays.',
  ])
  const table = lines.find(({ content }) => content.startsWith('Customer'))!
  t.match(table, { session_id: 'work', timestamp: Date.parse('2026-05-28T14:30:00Z') })
  t.same(table.metadata, {
    origin: 'import',
    source: 'okf',
    document: 'tables/orders',
    title: 'Customer: orders',
    type: 'Table',
    tags: 'sales, orders',
  })
})

t.test('2: options and exports that are wrong say what to change, and nothing is sent', async t => {
  const { client, at } = await newVault()
  const claude = written('claude.json', JSON.stringify([claudeConversation()]))
  const cut = written('cut.json', JSON.stringify([chatgptConversation()]).slice(0, -50))
  const other = written('other.zip', zipOf({ 'readme.txt': 'hello' }))
  for (const [args, words] of [
    [[claude, ...at], /--from must be one of chatgpt, claude/],
    [['--from', 'constructor', claude, ...at], /--from must be one of/],
    [['--from', 'chatgpt', ...at], /name one export/],
    [['--from', 'chatgpt', 'a', 'b', ...at], /name one export/],
    [['--from', 'claude', claude, ...at, '--on-conflict', 'replace'], /needs --from okf/],
    [['--from', 'claude', claude, ...at, '--part-lines', '0'], /part-lines/],
    [['--from', 'claude', claude, ...at, '--nonsense'], /nonsense/],
    [['--from', 'claude', claude], /no service is running/],
    [['--from', 'nothing', claude, ...at], /--from must be one of[^]*Usage/],
    [['--from', 'chatgpt', claude, ...at], /no memory of ChatGPT\n.*--from claude\n/],
    [['--from', 'chatgpt', cut, ...at], /ends in the middle of a value\nIt is incomplete/],
    [['--from', 'chatgpt', other, ...at], /no file of an export of ChatGPT\nGive the zip/],
    [['--from', 'chatgpt', join(dir, 'absent'), ...at], /no such file/],
  ] as [string[], RegExp][]) {
    const { code, err } = await run(args)
    t.equal(code, 2, `${args.join(' ')}: ${err}`)
    t.match(err, words)
  }
  t.same(await exportLines(client), [])
  t.match(await run(['--help']), { code: 0, out: /^Usage: [^]*letta[^]*Exit code/ })
})

t.test('0: an export beside which no position can be saved', async t => {
  const { client, at } = await newVault()
  const file = written('beside.json', JSON.stringify(mem0Page()))
  mkdirSync(`${file}.import-state.json.new`)
  const { code, out, err } = await run(['--from', 'mem0', file, ...at, '--json'])
  t.equal(code, 0, err)
  t.match(JSON.parse(out), { status: 'complete', memories: 1, stored: 1 })
  t.match(err, /The position cannot be saved: EISDIR/)
  t.equal((await exportLines(client)).length, 1)
})

t.test('3: when the service refuses, the same command goes on from there', async t => {
  const { client } = await newVault()
  let [sent, open] = [0, false]
  const gate = createServer((request, response) => {
    if (!open && request.url!.startsWith('/v1/memory/upload') && ++sent > 1) {
      request.resume()
      response.writeHead(402).end(JSON.stringify({ error: 'No card', hint: 'Add one' }))
      return
    }
    const chunks: Buffer[] = []
    request.on('data', chunk => chunks.push(chunk))
    request.on('end', () => {
      const names = [
        'authorization',
        'content-type',
        'content-encoding',
        'idempotency-key',
        'prefer',
      ]
      const headers = names.flatMap(name =>
        request.headers[name] === undefined ? [] : [[name, String(request.headers[name])]],
      )
      void fetch(base + request.url!, {
        method: request.method!,
        headers: headers as [string, string][],
        ...(chunks.length > 0 && { body: Buffer.concat(chunks) }),
      }).then(async answer => response.writeHead(answer.status).end(await answer.text()))
    })
  })
  const url = await listen(t, gate)

  const texts = Array.from({ length: 52 }, (_, n) => `fact ${n}`)
  const file = written('many.jsonl', texts.map(memory => JSON.stringify({ memory })).join('\n'))
  const args = [
    '--from',
    'mem0',
    file,
    '--base-url',
    url,
    '--key',
    client.key,
    '--part-lines',
    '50',
  ]
  const stopped = await run(args)
  t.equal(stopped.code, 3, stopped.err)
  t.match(stopped.out, /without a time.*: 52\n[^]*stopped: 50 memories · 50 stored\n$/)
  t.match(stopped.err, /402: No card\nAdd one\nRun it again to continue\.\n$/)
  t.notOk(readFileSync(`${file}.import-state.json`, 'utf8').includes(client.key))

  open = true
  const rest = await run(args)
  t.equal(rest.code, 0, rest.err)
  t.match(rest.err, /Going on after memory 50/)
  t.match(rest.out, /complete: 52 memories · 52 stored\n$/)
  t.equal(new Set((await exportLines(client)).map(({ content }) => content)).size, 52)
})

t.test('notes and other memories move in and are recalled', async t => {
  const { client, at } = await newVault()
  const notes = written(
    'notes.zip',
    zipOf({
      'Daily/2026-01-02.md': 'Rowed to the heron island.',
      'Garden.md': '---\ncreated: 2025-05-01\ntags: [peas]\n---\nThe peas stand behind the shed.',
      'map.png': '',
    }),
  )
  const message = {
    content: 'My lamp is called Otto.',
    peer_id: 'ada',
    created_at: '2026-02-01T10:00:00Z',
  }
  const honcho = written('honcho.json', JSON.stringify({ items: [message] }))
  const memory = {
    id: 'm',
    memory: 'Ada cycles to work.',
    isLatest: true,
    system: { createdAt: '2026-03-01' },
  }
  const supermemory = written('sm.jsonl', JSON.stringify({ documents: [], memories: [memory] }))
  for (const [from, file, said] of [
    [
      'markdown',
      notes,
      /2 memories from 2025-05-01 to 2026-01-02[^]*left out: files that are not read: \.png: 1/,
    ],
    ['honcho', honcho, /1 memory from 2026-02-01/],
    ['supermemory', supermemory, /1 memory from 2026-03-01/],
  ] as const) {
    for (const stored of [/ stored/, / 0 stored · \d already there/]) {
      const { code, out, err } = await run(['--from', from, file, ...at])
      t.equal(code, 0, err)
      t.match(out, said)
      t.match(out, stored)
    }
  }
  for (const [query, words] of [
    ['Where do the peas stand?', /behind the shed/],
    ['What is my lamp called?', /Otto/],
    ['How does Ada get to work?', /cycles to work/],
  ] as const) {
    const { body } = await client.post('/v1/memory/search', { query, limit: 1 })
    t.match(JSON.stringify(body), words)
  }
})

t.test(
  'a folder of documents: each is stored, again it adds nothing, a bad one is named',
  async t => {
    const { client, at } = await newVault()
    const folder = join(dir, 'papers')
    mkdirSync(join(folder, 'flat'), { recursive: true })
    writeFileSync(join(folder, 'flat', 'lease.pdf'), pdfOf([['The lease runs for two years.'], []]))
    writeFileSync(join(folder, 'boiler.docx'), docxOf(['The boiler is behind the stairs.']))
    writeFileSync(join(folder, 'scan.pdf'), pdfOf([[]]))
    writeFileSync(join(folder, 'photo.jpg'), 'x')
    const dry = await run(['--from', 'files', folder, '--dry-run'])
    t.match(dry.out, /flat\/lease\.pdf: 1 memories would be stored, left out: pages without text/)
    t.same(await exportLines(client), [])
    const first = await run(['--from', 'files', folder, ...at])
    t.equal(first.code, 1, first.err)
    t.match(first.out, /^boiler\.docx: 1 stored\nflat\/lease\.pdf: 1 stored, left out: /)
    t.match(first.out, /scan\.pdf: 400: scan\.pdf has no text/)
    t.match(first.out, /left out, by their endings: 1\n$/)
    const again = await run(['--from', 'files', folder, ...at, '--json'])
    t.match(JSON.parse(again.out), {
      files: [{ stored: 0, skipped: 1 }, { stored: 0, skipped: 1 }, {}],
      skipped: 1,
    })
    t.equal((await exportLines(client)).length, 2)
  },
)
