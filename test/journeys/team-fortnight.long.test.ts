import t from 'tap'
import { storeProviderKey } from '#shared/access/provider-key.ts'
import {
  sharedMemoryFilter,
  sharedMemoryFromDocument,
  type SharedMemory,
} from '#shared/org/memories/shared-memories.mongo.ts'
import { createTestClient, startTestApi } from '#test/support/start/api.ts'
import { insertTag } from '#test/support/checks/alter.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { auditEventsOf } from '#test/support/checks/observe.ts'
import { countOpenTurns } from '#test/support/checks/observe-jobs.ts'
import {
  processEnvironment,
  startProcess,
  type ReadyProcess,
} from '#test/support/start/processes.ts'
import {
  fortnightMembers,
  fortnightRoles,
  newestValues,
  teamFortnight,
  type TeamExchange,
} from '#test/support/samples/team-fortnight.ts'
import { buildTeam } from '#test/support/start/team.ts'
import { startTeamModel } from '#test/support/doubles/team-model.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

/*
 * Two weeks of a team of eight: four exchanges in flight at a time, whatever their times are; three workers,
 * of which three are killed; a model that is away for a while, and a redrive. In the end every subject has its
 * newest value, of the right author and day, and no other. `TEAM_EXCHANGES` makes it longer.
 */

const count = Number(process.env.TEAM_EXCHANGES ?? 80)
const exchanges = teamFortnight({ count, seed: Number(process.env.TEAM_SEED ?? 7) })

const model = await startTeamModel(t)
const env = { ...model.env, ORG_GATHER_SECONDS: '1' }
const backend = await createTestBackend(t, { env })
const { base } = await startTestApi(t, backend)
const workerEnv = processEnvironment(backend.config, env)
const startWorker = (): Promise<ReadyProcess> =>
  startProcess(t, 'node workers/index.ts ingest org-extract org-tag org-reconcile', workerEnv)

const team = await buildTeam(backend)
const { query } = backend.postgres
await storeProviderKey(
  { query, seal: backend.seal },
  { account: team.account, actor: 'test' },
  'openai',
  'sk-0123456789abcdef',
)
for (const label of ['engineering', 'finance', 'people'])
  await insertTag(backend, team.org, label, `Is this about ${label}?`)
const clients = new Map<string, ReturnType<typeof createTestClient>>()
for (const [name, tags] of Object.entries(fortnightRoles)) await team.defineRole(name, tags)
for (const { name, roles } of fortnightMembers)
  clients.set(name, createTestClient(base, await team.addMember(name, roles)))

async function send({ member, at, session, text }: TeamExchange): Promise<void> {
  const messages = [
    { role: 'user', content: text, timestamp: at },
    { role: 'assistant', content: 'I see.', timestamp: at },
  ]
  const body = { messages, session_id: session }
  // As clients do: a database that is late is asked again, under the same key.
  const headers = { 'idempotency-key': crypto.randomUUID() }
  const ask = () => clients.get(member)!.post('/v1/memory/ingest', body, headers)
  let { status } = await ask()
  for (let tries = 1; status === 503 && tries < 10; tries++) status = (await ask()).status
  if (status !== 202) throw new Error(`an exchange was answered with ${status}`)
}

/** Sends exchanges, four in flight; `events` happen when so many have been sent. */
async function sendAll(events: ReadonlyMap<number, () => Promise<void>>): Promise<void> {
  const waiting = [...exchanges.entries()]
  const lane = async (): Promise<void> => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const [number, exchange] = next
      await events.get(number)?.()
      await send(exchange)
    }
  }
  await Promise.all([lane(), lane(), lane(), lane()])
}

const memories = async (): Promise<SharedMemory[]> => {
  const rows = await backend.mongo.memories.find(sharedMemoryFilter(team)).toArray()
  return rows.map(sharedMemoryFromDocument)
}

t.test('two weeks, kills, an outage and a redrive: the newest words alone', async t => {
  const workers = await Promise.all([startWorker(), startWorker(), startWorker()])
  const replace = async (): Promise<void> => {
    const worker = workers.shift()!
    worker.kill('SIGKILL')
    await worker.exited
    workers.push(await startWorker())
  }
  const part = (share: number): number => Math.floor(count * share)
  await sendAll(
    new Map([
      [part(0.2), replace],
      [part(0.4), async () => model.failAll(503)],
      [part(0.5), replace],
      [part(0.6), async () => model.failAll(null)],
      [part(0.8), replace],
    ]),
  )
  const admin = createTestClient(base, team.adminKey)
  const redriven = await admin.post(`/v1/orgs/${team.org}/pipeline/redrive`)
  t.equal(redriven.status, 200)
  await waitUntil('every turn is done', async () => (await countOpenTurns(backend)) === 0, 400_000)

  const live = await memories()
  for (const [subject, { value, member, at, tag }] of newestValues(exchanges)) {
    const about = live.filter(({ text }) => text.startsWith(`${subject}:`))
    const text = `${subject}: ${value}${tag === null ? '' : ` #${tag}`}`
    t.match(about, [{ text, tags: tag === null ? [] : [tag] }], subject)
    t.equal(about.length, 1, `${subject} once`)
    // Who said it first in these words, or who has said it again since.
    const sayers = exchanges.filter(({ facts }) =>
      facts.some(fact => fact.subject === subject && fact.value === value),
    )
    const [memory] = about
    t.ok(
      sayers.some(one => one.member === memory?.author && one.at === memory.acquiredAt),
      `${subject}: ${memory?.author} on the day it was said, ${member} at ${at} last`,
    )
  }
  const actions = (await auditEventsOf(backend, team.org)).map(({ action }) => action)
  const created = actions.filter(action => action === 'create').length
  const deleted = actions.filter(action => action === 'delete').length
  t.equal(created - deleted, live.length, 'creates less deletes are what is live')
  t.comment(
    `calls: extract ${model.count('extract')}, tag ${model.count('tag')}, reconcile ${model.count('reconcile')}`,
  )
})
