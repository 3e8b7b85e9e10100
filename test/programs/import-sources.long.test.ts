import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { installPython } from '#test/programs/install.ts'
import { runProgram } from '#test/programs/run-program.ts'
import { readFromWhole } from '#test/support/samples/import-lines.ts'
import { listen } from '#test/support/start/listen.ts'

/**
 * The lines of the guide that write what supermemory and Honcho hold, by their packages. Both services are hosted: what
 * they answer is made here by the types of the packages, and the packages read it.
 */

t.setTimeout(600_000)
const guide = readFileSync(
  fileURLToPath(new URL('../../scripts/guides/move-in.md', import.meta.url)),
  'utf8',
)
const [supermemoryLines, honchoLines] = [...guide.matchAll(/^```python\n(.*?)^```$/gms)].map(
  found => found[1]!,
)

const at = '2026-02-01T10:00:00.123456Z'
const page = (items: object[]) => ({ items, page: 1, size: 50, total: items.length, pages: 1 })
const listed = (number: number, fields: object) => ({
  documents: [],
  chunks: [],
  memories: [],
  pagination: { currentPage: number, totalItems: 2, totalPages: 2 },
  ...fields,
})
const system = { createdAt: at, updatedAt: at }
const documentOf = (id: string, content: string) => ({
  id,
  title: null,
  type: 'text',
  content,
  summary: null,
  metadata: { place: 'shed' },
  url: null,
  system: { status: 'done', dreamingStatus: 'done', ...system },
})
const memoryOf = (id: string, memory: string, isLatest: boolean) => ({
  id,
  memory,
  metadata: {},
  isStatic: false,
  isInference: false,
  isLatest,
  isForgotten: false,
  version: 1,
  system,
})
const said = (id: string, peer_id: string, content: string) => ({
  id,
  content,
  peer_id,
  session_id: 's-1',
  workspace_id: 'w',
  metadata: {},
  created_at: at,
  token_count: 5,
})

/** What the two services answer. */
const answers: [path: RegExp, answer: object][] = [
  [
    /list\/documents\?page=1&/,
    listed(1, { documents: [documentOf('d1', 'My bicycle is green.')] }),
  ],
  [/list\/documents\?page=2&/, listed(2, { documents: [documentOf('d2', 'Its bell is loud.')] })],
  [/list\/memories\?page=1&/, listed(1, { memories: [memoryOf('m1', 'Ada cycles.', true)] })],
  [/list\/memories\?page=2&/, listed(2, { memories: [memoryOf('m2', 'Ada runs.', false)] })],
  [
    /\/messages\/list/,
    page([said('m1', 'ada', 'My lamp broke.'), said('m2', 'bot', 'A new one?')]),
  ],
  [
    /\/conclusions\/list/,
    page([
      {
        id: 'c1',
        content: 'Ada needs a lamp.',
        observer_id: 'bot',
        observed_id: 'ada',
        session_id: 's-1',
        created_at: at,
      },
    ]),
  ],
  [/\/ada\/sessions/, page([{ id: 's-1', is_active: true, workspace_id: 'w', created_at: at }])],
  [/\/peers$/, { id: 'ada', workspace_id: 'w', created_at: at }],
  [/\/workspaces$/, { id: 'w', created_at: at }],
]

const service = createServer((request: IncomingMessage, response) => {
  const found = answers.find(([path]) => path.test(request.url!))
  response.writeHead(found ? 200 : 404, { 'content-type': 'application/json' })
  response.end(JSON.stringify(found?.[1] ?? {}))
})
const url = await listen(t, service)
const cwd = t.testdir({})

/** Runs lines of the guide with the service at this address. @returns what they wrote, as the importer reads it. */
async function run(t: Test, name: string, lines: string, pin: string) {
  const installed = await installPython([pin])
  if ('missing' in installed) return t.pass(installed.missing, { skip: installed.missing })
  const script = `${lines}\nprint('{"check": "the lines of the guide run", "ok": true}')`
  await runProgram(t, join(installed.folder, 'bin/python'), ['-c', script], {
    cwd,
    env: {
      PATH: process.env.PATH,
      HOME: cwd,
      NAMESPACE: 'ada',
      SUPERMEMORY_API_KEY: 'sm-1',
      HONCHO_API_KEY: 'h-1',
      HONCHO_URL: url,
      HONCHO_WORKSPACE_ID: 'w',
      HONCHO_PEER_ID: 'ada',
    },
  })
  const {
    lines: read,
    lost,
    strangers,
  } = await readFromWhole(name, readFileSync(join(cwd, `${name}.jsonl`), 'utf8'))
  t.same(strangers, [])
  return {
    lost,
    read: read.map(({ role, content, timestamp, metadata }) => [
      role,
      content,
      timestamp,
      metadata!.speaker,
    ]),
  }
}

const time = '2026-02-01T10:00:00.123Z'

await t.test('supermemory', async t => {
  const lines = supermemoryLines!.replace('Supermemory()', `Supermemory(base_url="${url}")`)
  const found = await run(t, 'supermemory', lines, 'supermemory==5.0.1')
  if (typeof found !== 'object') return
  t.same(found.lost, { 'memories that a newer version replaced': 1 })
  t.same(found.read, [
    ['user', 'My bicycle is green.', time, undefined],
    ['user', 'Its bell is loud.', time, undefined],
    ['user', 'Ada cycles.', time, undefined],
  ])
})

await t.test('Honcho', async t => {
  const found = await run(t, 'honcho', honchoLines!, 'honcho-ai==2.7.0')
  if (typeof found !== 'object') return
  t.same(found.lost, {})
  t.same(found.read, [
    ['user', 'My lamp broke.', time, 'ada'],
    ['assistant', 'A new one?', time, 'bot'],
    ['user', 'Ada needs a lamp.', time, 'bot'],
  ])
})
