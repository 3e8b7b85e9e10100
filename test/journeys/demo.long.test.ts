import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { questions } from '#scripts/clients/demo/conversation.ts'
import type { StoryResult } from '#scripts/clients/demo/story.ts'
import { cleanEnvironment } from '#scripts/services/process.ts'
import {
  buildKey,
  createTestClient,
  startTestApi,
  startJobWorkers,
} from '#test/support/start/api.ts'
import { buildAdmin } from '#test/support/start/admin.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { readPage, readSection } from '#test/support/checks/readme.ts'

// A start of its own makes two databases from nothing.

const script = fileURLToPath(new URL('../../scripts/clients/demo.ts', import.meta.url))
const scratch = mkdtempSync(join(tmpdir(), 'demo-test-'))
t.teardown(() => rmSync(scratch, { recursive: true, force: true }))

type Ran = { code: number | null; out: string; err: string }

/** Runs the demo as a newcomer does; temporary files go where the test can count them. */
function demo(args: string[], env: Record<string, string> = {}): Promise<Ran> {
  const { BASE_URL: _base, MEMORY_KEY: _key, ...rest } = cleanEnvironment()
  const child = spawn(process.execPath, [script, ...args], {
    env: { ...rest, DATA_DIR: join(scratch, 'no-vault'), TMPDIR: scratch, ...env },
  })
  let out = ''
  let err = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text))
  return new Promise(resolve => child.once('close', code => resolve({ code, out, err })))
}

t.test('a running service: the demo passes, and leaves the vault of its owner alone', async t => {
  const backend = await createTestBackend(t)
  await startJobWorkers(backend)
  const key = await buildKey(backend)
  const api = await startTestApi(t, backend, key)
  const { base } = api

  const { code, out, err } = await demo(['--json'], { BASE_URL: base, MEMORY_KEY: key })
  t.equal(err, '')
  const story = JSON.parse(out) as StoryResult & { service: { kind: string } }
  t.same(story.failed, [])
  t.equal(code, 0, err)
  t.equal(story.service.kind, 'running')
  const turns = story.told.reduce((sum, { turns }) => sum + turns, 0)
  t.equal(story.stats.memories, turns)
  t.equal(story.asked.length, questions.length)
  t.ok(story.asked.every(({ found }) => found.some(({ isAnswer }) => isAnswer)))
  t.equal(story.unanswerable.context, null)
  t.match(story.prepared.context, /^<memory_context>\n\[.* · (user|assistant)\] .*\n/)
  t.equal((await api.get('/v1/memory/stats')).body.memories, 0, 'the vault of the owner')

  await t.test('found by the credentials it wrote down', async t => {
    const dataDir = join(scratch, 'vault')
    mkdirSync(dataDir)
    const credentials = { base_url: base, memory_key: key, admin_key: null }
    writeFileSync(join(dataDir, 'credentials.json'), JSON.stringify(credentials))
    const { code, out } = await demo([], { DATA_DIR: dataDir })
    t.equal(code, 0, out)
    t.match(out, `Using the service that runs at ${base}`)
    const [demoKey = ''] = /\bmk_[A-Za-z0-9]{32}\b/.exec(out) ?? []
    t.not(demoKey, key)
    const { body } = await createTestClient(base, demoKey).get('/v1/memory/stats')
    t.equal(body.memories, story.stats.memories, 'the vault the demo says it made')
  })
})

t.test('team: roles, facts and a review queue, with a key for each member', async t => {
  const backend = await createTestBackend(t)
  await startJobWorkers(backend)
  const { key: adminKey, memoryKey } = await buildAdmin(backend)
  const { base } = await startTestApi(t, backend)
  const dataDir = join(scratch, 'team')
  mkdirSync(dataDir)
  const credentials = { base_url: base, memory_key: memoryKey, admin_key: adminKey }
  writeFileSync(join(dataDir, 'credentials.json'), JSON.stringify(credentials))
  const env = { DATA_DIR: dataDir }
  const { code, out, err } = await demo(['team', 'Acme'], env)
  t.same([code, err], [0, ''])
  const [, org] = /console#\/orgs\/(\S+)/.exec(out)!
  const admin = createTestClient(base, adminKey)
  const shared = await admin.get(`/v1/orgs/${org}/memories`)
  const waiting = await admin.get(`/v1/orgs/${org}/memories/review`)
  t.match(out, `${shared.body.items.length - waiting.body.count} facts are shared`)
  t.match(out, `${waiting.body.count} wait for review`)
  const keys = out.match(/mk_org_\w+/g)!
  t.equal(keys.length, 3)
  const [ada, , cho] = keys.map(key => createTestClient(base, key))
  const price = { query: 'What does the large plan cost?', limit: 5 }
  t.match(JSON.stringify((await ada!.post('/v1/memory/search', price)).body), '79 euro')
  t.notMatch(JSON.stringify((await cho!.post('/v1/memory/search', price)).body), '79 euro')
  t.match(await demo(['team', 'Acme'], env), { code: 1, err: /Acme|name/ }, 'a taken name')
  t.match(await demo(['teams']), { code: 2 })
})

/** A line of the output without what differs each time: how long it took, and how long ago it was. */
const constantPart = (line: string): string =>
  line
    .trim()
    .replace(/ · [\d.]+ ms$/, '')
    .replace(/ · [^·]+ · (?=user|assistant)/, ' · ')

t.test('no service: one is started, filled, asked and removed again', async t => {
  const { code, out, err } = await demo([], { DATABASE_URL: 'postgres://127.0.0.1:1/not-used' })
  t.equal(err, '')
  t.equal(code, 0, out)
  for (const part of [
    'Starting a service',
    'What was said',
    'A cake without nuts',
    'What is remembered',
    questions[0]!.text,
    '✓',
    'context: null',
    'What a model is given',
    '<memory_context>',
    'In short',
    `All ${questions.length + 2} questions were answered as they should be.`,
  ])
    t.ok(out.includes(part), part)
  const printed = new Set(out.split('\n').map(constantPart))
  const [, shown = ''] = /^```\n( .*?)^```$/ms.exec(
    readSection(readPage('README.md'), 'Two commands'),
  )!
  const lines = shown.trimEnd().split('\n').map(constantPart)
  t.same([lines.length, lines.filter(line => !printed.has(line))], [11, []], 'the first page')
  t.notOk(out.includes('\u001B'), 'no colours where nobody looks')
  t.ok(
    out.split('\n').every(line => line.length <= 100),
    'no line passes 100 columns',
  )
  const left = readdirSync(scratch).filter(name => name.startsWith('memory-vault-demo-'))
  t.same(left, [])
})

t.test('a service that forgets everything fails, and the demo says which questions', async t => {
  let stored = 0
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = chunks.length > 0 ? JSON.parse(Buffer.concat(chunks).toString()) : {}
      stored += body.messages && request.url?.includes('ingest') ? body.messages.length : 0
      response.end(
        JSON.stringify({
          key: 'mk_forgetful',
          memories: request.url === '/v1/memory/search' ? [] : stored,
          context: null,
        }),
      )
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const { code, out, err } = await demo(['--json', '--base-url', base, '--key', 'mk_any'])
  t.equal(code, 1, err)
  t.equal((JSON.parse(out) as StoryResult).failed.length, questions.length + 1)
})

t.test('options', async t => {
  const help = await demo(['--help'])
  t.equal(help.code, 0, help.err)
  t.match(help.out, '--base-url')
  t.match(await demo(['--nonsense']), { code: 2, err: /--nonsense/ })
  t.match(await demo(['--key', 'mk_any']), { code: 2, err: /--base-url/ })
  t.match(await demo(['--base-url', 'http://127.0.0.1:1']), { code: 2, err: /--key/ })
  const unreachable = await demo(['--base-url', 'http://127.0.0.1:1', '--key', 'mk_any'])
  t.match(unreachable, { code: 1, out: /eight months/, err: /No answer: / })
})
