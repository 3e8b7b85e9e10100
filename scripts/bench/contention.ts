import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { createCredentials } from '#scripts/create-credentials.ts'
import {
  createBenchEnvironment,
  log,
  randomSentence,
  seededRandom,
} from '#scripts/bench/bench-environment.ts'
import { report } from '#scripts/bench/measure.ts'
import { startProcess } from '#scripts/bench/process.ts'
import { openBackend } from '#shared/backend.ts'
import { readConfig } from '#shared/core/config.ts'

const seconds = 75
const clients = 16
const accounts = 2
const vaultsPerAccount = 3

const env = await createBenchEnvironment({ EMBEDDINGS: 'local', LOG_LEVEL: 'error' })
const config = readConfig(env)
const admin = new pg.Client({ connectionString: config.databaseUrl })
await admin.connect()
// Postgres looks for a deadlock when a lock was waited for this long; 1 s by default.
await admin.query(`alter database ${admin.database} set deadlock_timeout = '200ms'`)

const backend = await openBackend(config, log, 'web')
const keys: string[] = []
for (let account = 0; account < accounts; account++) {
  const { memoryKey } = await backend.postgres.transaction(tx =>
    createCredentials(tx, config.keyPepper, {
      email: `contention-${account}@example.com`,
      keyName: 'bench',
      keyLifetimeDays: null,
      adminLifetimeDays: null,
      paymentMethod: 'card',
      balance: 1_000_000_000_000,
    }),
  )
  keys.push(memoryKey)
}
await backend.close()

const webs = await Promise.all([
  startProcess('api/index.ts', env),
  startProcess('api/index.ts', env),
])
const workers = await Promise.all([
  startProcess('workers/index.ts', env),
  startProcess('workers/index.ts', env),
])
const next = seededRandom(11)
const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(next() * items.length)]!

type Answer = { status: number; body: { key?: string; memories?: { id: string }[] } }

async function send(
  key: string,
  path: string,
  {
    method = 'POST',
    body,
    type = 'application/json',
  }: { method?: string; body?: unknown; type?: string },
): Promise<Answer> {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const response = await fetch(`http://127.0.0.1:${pick(webs).port}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      ...(body !== undefined && { 'content-type': type }),
    },
    ...(body !== undefined && { body: text }),
  })
  const answer = await response.text()
  if (response.status >= 500) process.stdout.write(`  ${response.status} ${path} ${answer}\n`)
  return { status: response.status, body: JSON.parse(answer) as Answer['body'] }
}

const vaults = [...keys]
for (const key of keys) {
  for (let more = 1; more < vaultsPerAccount; more++) {
    const minted = await send(key, '/v1/keys', { body: { name: `vault ${more}` } })
    vaults.push(minted.body.key!)
  }
}

const sentence = (): string => randomSentence(20, next)
const session = (): object => (next() < 0.3 ? { session_id: `s${Math.floor(next() * 3)}` } : {})
const search = (key: string) =>
  send(key, '/v1/memory/search', { body: { query: sentence(), limit: 5 } })

/** What a client does, by weight. */
const actions: [number, (key: string) => Promise<Answer>][] = [
  [40, key => send(key, '/v1/memory/ingest', { body: exchange() })],
  [15, key => send(key, '/v1/memory/ingest?wait=true', { body: exchange() })],
  [20, search],
  [
    8,
    key => {
      const lines = Array.from({ length: 30 }, (_, n) => ({
        content: sentence(),
        timestamp: Date.now() - n,
      }))
      return send(key, '/v1/memory/upload', {
        body: lines.map(line => JSON.stringify(line)).join('\n'),
        type: 'application/x-ndjson',
      })
    },
  ],
  [
    8,
    async key => {
      const id = (await search(key)).body.memories?.[0]?.id
      return id
        ? send(key, '/v1/memory/edit', { body: { memory_id: id, text: sentence() } })
        : search(key)
    },
  ],
  [
    6,
    async key => {
      const ids = (await search(key)).body.memories?.map(({ id }) => id) ?? []
      return ids.length > 0 ? send(key, '/v1/memory/delete-ids', { body: { ids } }) : search(key)
    },
  ],
  [3, key => send(key, '/v1/memory', { method: 'DELETE' })],
]

const exchange = () => ({
  messages: [
    { role: 'user', content: sentence() },
    { role: 'assistant', content: sentence() },
  ],
  ...session(),
})

const totalWeight = actions.reduce((sum, [weight]) => sum + weight, 0)
function pickAction(): (key: string) => Promise<Answer> {
  let left = next() * totalWeight
  return actions.find(([weight]) => (left -= weight) < 0)?.[1] ?? search
}

const counts = new Map<string, number>()
const until = Date.now() + seconds * 1_000
await Promise.all(
  Array.from({ length: clients }, async () => {
    while (Date.now() < until) {
      const { status } = await pickAction()(pick(vaults)).catch(() => ({ status: 0 }))
      const group = status === 0 ? 'no answer' : `${Math.floor(status / 100)}xx`
      counts.set(group, (counts.get(group) ?? 0) + 1)
    }
  }),
)
await delay(2_000)
const { rows } = await admin.query<{ deadlocks: string }>(
  'select deadlocks from pg_stat_database where datname = current_database()',
)
const countOf = (group: string): number => counts.get(group) ?? 0
report('requests answered 2xx', countOf('2xx'))
report('requests answered 4xx', countOf('4xx'))
report('requests answered 5xx', countOf('5xx'), { bar: { most: 0 } })
report('requests without an answer', countOf('no answer'), { bar: { most: 0 } })
report('deadlocks that Postgres ended', Number(rows[0]!.deadlocks), { bar: { most: 0 } })

await Promise.all([...webs, ...workers].map(process => process.stop()))
await admin.end()
