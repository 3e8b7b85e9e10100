/**
 * Measures whether the time of an answer tells a member of memories hidden from them: `npm run bench -- wall`.
 * Three teams are the same but for 1,000 hidden memories about what is asked in one of them. Each round asks
 * all three the same, in random order; the pair without hidden memories is the control. A channel whose
 * signed ranks are 4 deviations away from no difference, and further than those of the control, is a leak.
 */
import { request, Agent } from 'node:http'
import { seededRandom } from '#scripts/bench/bench-environment.ts'
import { openBenchService } from '#scripts/bench/bench-service.ts'
import { median, report } from '#scripts/bench/measure.ts'
import { startProcess } from '#scripts/bench/process.ts'
import { comparePairs } from '#scripts/bench/wall/rank-test.ts'
import { createWallTeam, topic, type WallTeam } from '#scripts/bench/wall/teams.ts'
import { createCredentials } from '#scripts/create-credentials.ts'

const agents: Record<string, Agent> = {}
const rounds = Number(process.env.WALL_ROUNDS ?? 400)
/** Deviations from no difference that chance reaches once in about 16,000 comparisons. */
const zMax = 4

type Question = { method: string; path: string; body?: object }

/** What a member can ask, by name. */
const channels: Record<string, (team: WallTeam) => Question> = {
  search: () => ({ method: 'POST', path: '/v1/memory/search', body: { query: topic, limit: 50 } }),
  prepare: () => ({
    method: 'POST',
    path: '/v1/memory/prepare',
    body: { messages: [{ role: 'user', content: `What is ${topic}?` }] },
  }),
  'date-search': () => ({
    method: 'POST',
    path: '/v1/memory/date-search',
    body: { from: '2000-01-01', query: topic },
  }),
  list: () => ({ method: 'GET', path: '/v1/memory/list' }),
  stats: () => ({ method: 'GET', path: '/v1/memory/stats' }),
  usage: () => ({ method: 'GET', path: '/v1/account/usage' }),
  shares: () => ({ method: 'GET', path: '/v1/shares' }),
  inspect: ({ hidden }) => ({
    method: 'POST',
    path: '/v1/memory/inspect',
    body: { memory_id: hidden },
  }),
  edit: ({ hidden }) => ({
    method: 'POST',
    path: '/v1/memory/edit',
    body: { memory_id: hidden, text: 'mine' },
  }),
  'taking back': ({ hidden }) => ({ method: 'DELETE', path: `/v1/shares/${hidden}` }),
  ingest: () => ({
    method: 'POST',
    path: '/v1/memory/ingest',
    body: { messages: [{ role: 'user', content: `We spoke about ${topic}.` }] },
  }),
}

const { env, config, backend } = await openBenchService()
const { adminKey } = await backend.postgres.transaction(tx =>
  createCredentials(tx, config.keyPepper, {
    email: 'wall@example.com',
    keyName: 'bench',
    keyLifetimeDays: null,
    adminLifetimeDays: 1,
    paymentMethod: 'card',
    balance: null,
  }),
)
await backend.close()
const web = await startProcess('api/index.ts', env)
const open = (withHidden: boolean) => createWallTeam(web.port, adminKey!, { withHidden })
const teams = [await open(false), await open(false), await open(true)]
const random = seededRandom(13)

for (const [name, ask] of Object.entries(channels)) {
  for (let warm = 0; warm < 20; warm++) for (const team of teams) await time(team, ask(team))
  const times: number[][] = [[], [], []]
  for (let round = 0; round < rounds; round++) {
    const order = [0, 1, 2].toSorted(() => random() - 0.5)
    for (const number of order) {
      times[number]!.push(await time(teams[number]!, ask(teams[number]!)))
    }
  }
  const [without, control, hidden] = times as [number[], number[], number[]]
  const pairsWith = (others: number[]) =>
    without.map((one, index) => [one, others[index]!] as const)
  const chance = comparePairs(pairsWith(control))
  const found = comparePairs(pairsWith(hidden))
  report(`${name}, p50`, median(without), { unit: 'ms' })
  report(`${name}: control, median difference`, chance.median * 1_000, { unit: 'µs' })
  report(`${name}: control, deviations`, Math.abs(chance.z))
  report(`${name}: with hidden memories, median difference`, found.median * 1_000, { unit: 'µs' })
  report(`${name}: with hidden memories, deviations`, Math.abs(found.z), {
    bar: { most: Math.max(zMax, Math.abs(chance.z)) },
  })
}
await web.stop()

/** Milliseconds of one request over a kept connection. */
function time({ key }: WallTeam, { method, path, body }: Question): Promise<number> {
  agents[key] ??= new Agent({ keepAlive: true, maxSockets: 1 })
  const agent = agents[key]
  const sent = body && JSON.stringify(body)
  const headers = {
    authorization: `Bearer ${key}`,
    ...(sent && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(sent) }),
  }
  const startedAt = performance.now()
  return new Promise((resolve, reject) => {
    const asked = request(
      { agent, port: web.port, host: '127.0.0.1', path, method, headers },
      answer => {
        answer.on('data', () => {})
        answer.on('end', () => {
          if ((answer.statusCode ?? 500) >= 500) reject(new Error(`${path}: ${answer.statusCode}`))
          else resolve(performance.now() - startedAt)
        })
      },
    )
    asked.on('error', reject)
    asked.end(sent)
  })
}
