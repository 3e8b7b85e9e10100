import t from 'tap'
import { storeProviderKey } from '#shared/access/provider-key.ts'
import { sharedMemoryFilter } from '#shared/org/shared-memories.mongo.ts'
import { createTestClient, startTestApi, startJobWorkers } from '#test/support/api.ts'
import { createTestBackend } from '#test/support/backend.ts'
import { processEnvironment, launchProcess } from '#test/support/processes.ts'
import { buildTeam, type Team } from '#test/support/team.ts'
import { startTeamModel } from '#test/support/team-model.ts'
import { waitUntil } from '#test/support/wait-until.ts'
import { insertTag } from '#test/support/alter.ts'
import { auditEventsOf, teamBillsOf } from '#test/support/observe.ts'
import { countOpenTurns } from '#test/support/observe-jobs.ts'

// Processes are started; a busy machine needs longer than the 30 s a file has by itself.

const model = await startTeamModel(t)
const backend = await createTestBackend(t, { env: model.env })
const { base } = await startTestApi(t, backend)

type Point = { when: 'before' | 'after'; n: number; dies: string; lost?: true }

/** The transactions of a batch of three turns, of which the last goes on from the first. */
const points: Point[] = [
  { when: 'before', n: 1, dies: 'with the answer about all three', lost: true },
  { when: 'after', n: 1, dies: 'with that answer kept' },
  { when: 'after', n: 2, dies: 'with the facts of all three written' },
  { when: 'after', n: 4, dies: 'with the tags of all three written' },
  { when: 'after', n: 6, dies: 'with the first two decided' },
  { when: 'after', n: 8, dies: 'with the first one carried out' },
]

type Struck = Point & { name: string; team: Team }

async function strike(point: Point): Promise<Struck> {
  const name = `${point.when}-${point.n}`
  const team = await buildTeam(backend)
  const keys = { query: backend.postgres.query, seal: backend.seal }
  const owner = { account: team.account, actor: 'test' }
  await storeProviderKey(keys, owner, 'openai', 'sk-0123456789abcdef')
  await insertTag(backend, team.org, 'launch', 'Is it?')
  await team.defineRole('Launch', ['launch'])
  const client = createTestClient(base, await team.addMember('ada@example.com', ['Launch']))
  const turns: string[] = []
  for (const [n, fact] of ['launch: May #launch', 'floor: 3', 'launch: June #launch'].entries()) {
    const timestamp = Date.UTC(2026, 2, 2 + n)
    const [subject, value] = fact.split(':')
    const content = `Fact: ${subject} ${name}:${value}`
    const messages = [{ role: 'user', content, timestamp }]
    const { body } = await client.post('/v1/memory/ingest', { messages, session_id: 'one' })
    turns.push(body.operation_id as string)
  }
  const { exited, output } = launchProcess(
    t,
    `node test/support/crashing-passes.ts ${turns[0]} ${point.when} ${point.n}`,
    processEnvironment(backend.config, model.env),
  )
  t.same(await exited, { code: null, signal: 'SIGKILL' }, `${point.dies}: ${output()}`)
  return { ...point, name, team }
}

t.test('kill -9 in a batch of turns: nothing is lost, doubled, or asked twice', async t => {
  const struck: Struck[] = []
  const waiting = [...points]
  const lane = async (): Promise<void> => {
    for (let one = waiting.shift(); one; one = waiting.shift()) struck.push(await strike(one))
  }
  await Promise.all([lane(), lane()])
  await startJobWorkers(backend)
  await waitUntil('the turns are done', async () => (await countOpenTurns(backend)) === 0)
  for (const one of struck) {
    const rows = await backend.mongo.memories.find(sharedMemoryFilter(one.team)).toArray()
    t.same(
      rows.map(({ text, at }) => `${text} ${at.toISOString().slice(0, 10)}`).toSorted(),
      [`floor ${one.name}: 3 2026-03-03`, `launch ${one.name}: June #launch 2026-03-04`],
      one.dies,
    )
    const calls = model.calls
      .filter(({ userPrompt }) => JSON.stringify(userPrompt).includes(`launch ${one.name}:`))
      .map(({ pass }) => pass)
    // The third is asked about once with the first two, and once when these are settled.
    const expected = ['extract', 'tag', 'reconcile', 'reconcile']
    t.same(calls, one.lost ? ['extract', ...expected] : expected, one.dies)
    const actions = (await auditEventsOf(backend, one.team.org)).map(({ action }) => action)
    t.same(actions, ['create', 'create', 'update'], one.dies)
    const bills = await teamBillsOf(backend, one.team.account)
    t.same(bills.filter(kind => kind === 'org-extract').length, 1, one.dies)
  }
})
