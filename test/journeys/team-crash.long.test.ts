import t from 'tap'
import { storeProviderKey } from '#shared/access/provider-key.ts'
import { sharedMemoryFilter } from '#shared/org/shared-memories.mongo.ts'
import { createTestClient, startTestApi, startJobWorkers } from '#test/support/api.ts'
import { createTestBackend } from '#test/support/backend.ts'
import { processEnvironment, launchProcess } from '#test/support/processes.ts'
import { buildTeam, seedTeamMemories, type Team } from '#test/support/team.ts'
import { startTeamModel } from '#test/support/team-model.ts'
import { waitUntil } from '#test/support/wait-until.ts'
import { insertTag } from '#test/support/alter.ts'
import { auditEventsOf, decisionsOfTurn, teamBillsOf } from '#test/support/observe.ts'
import { countOpenTurns } from '#test/support/observe-jobs.ts'

const model = await startTeamModel(t)
const backend = await createTestBackend(t, { env: model.env })
const { query } = backend.postgres
const { base } = await startTestApi(t, backend)

type Point = { when: 'before' | 'after'; n: number; dies: string; lost?: 'extract' }

/** The transactions of a turn that brings one change and one addition. */
const points: Point[] = [
  { when: 'before', n: 1, dies: 'with the extractor’s answer', lost: 'extract' },
  { when: 'after', n: 1, dies: 'with that answer kept' },
  { when: 'after', n: 2, dies: 'with pass 1 written' },
  { when: 'after', n: 3, dies: 'with the classifier’s answer kept' },
  { when: 'after', n: 4, dies: 'with pass 2 written' },
  { when: 'after', n: 5, dies: 'with the answer about what is shared kept' },
  { when: 'after', n: 6, dies: 'with pass 3 written' },
  { when: 'before', n: 7, dies: 'with the change made and not told' },
  { when: 'after', n: 7, dies: 'with the change told' },
  { when: 'before', n: 8, dies: 'with the addition made and not told' },
  { when: 'after', n: 8, dies: 'with the addition told' },
  { when: 'after', n: 9, dies: 'with the turn finished' },
]

/** A team at which a worker has died, and the turn it died with. */
type Struck = Point & { name: string; team: Team; turn: string }

async function strike(point: Point): Promise<Struck> {
  const name = `${point.when}-${point.n}`
  const team = await buildTeam(backend)
  const { account, org } = team
  await storeProviderKey(
    { query, seal: backend.seal },
    { account, actor: 'test' },
    'openai',
    'sk-0123456789abcdef',
  )
  await insertTag(backend, org, 'launch', 'Is it?')
  const launch = { text: `launch ${name}: on May 5`, tags: ['launch'], reviewed: false }
  await seedTeamMemories(backend, team, [launch])
  await team.defineRole('Launch', ['launch'])
  const client = createTestClient(base, await team.addMember('ada@example.com', ['Launch']))
  const content = `Fact: launch ${name}: on June 7 #launch\nFact: floor ${name}: 3`
  const { body } = await client.post('/v1/memory/ingest', { messages: [{ role: 'user', content }] })
  return { ...point, name, team, turn: body.operation_id as string }
}

t.test(
  'kill -9 at every boundary of the passes: nothing is lost, doubled, or asked twice',
  async t => {
    const struck = await Promise.all(points.map(strike))
    const env = processEnvironment(backend.config, model.env)
    const waiting = [...struck]
    const lane = async (): Promise<void> => {
      for (let one = waiting.shift(); one; one = waiting.shift()) {
        const { turn, when, n, dies } = one
        const { exited, output } = launchProcess(
          t,
          `node test/support/crashing-passes.ts ${turn} ${when} ${n}`,
          env,
        )
        const exit = await exited
        t.same(exit, { code: null, signal: 'SIGKILL' }, exit.signal ? dies : `${dies}: ${output()}`)
      }
    }
    await Promise.all([lane(), lane()])

    await startJobWorkers(backend)
    await waitUntil(
      'every turn is finished, and its jobs are done',
      async () => (await countOpenTurns(backend)) === 0,
    )
    for (const one of struck) t.same(await leftOf(one), expected(one), one.dies)
  },
)

const expected = ({ name, lost }: Struck) => ({
  calls: [...(lost ? [lost] : []), 'extract', 'tag', 'reconcile'],
  memories: [`launch ${name}: on June 7 #launch`, `floor ${name}: 3`],
  audit: ['create', 'update', 'create'],
  bills: ['org-extract', 'org-memory', 'org-memory', 'org-memory', 'org-reconcile', 'org-tag'],
  actions: ['UPDATE', 'ADD'],
})

async function leftOf({ name, team, turn }: Struck) {
  const events = await auditEventsOf(backend, team.org)
  const memories = await backend.mongo.memories
    .find(sharedMemoryFilter(team))
    .sort({ _id: 1 })
    .toArray()
  return {
    calls: model.calls
      .filter(({ userPrompt }) => JSON.stringify(userPrompt).includes(`launch ${name}:`))
      .map(({ pass }) => pass),
    memories: memories.map(({ text }) => text),
    audit: events.map(({ action }) => action),
    bills: await teamBillsOf(backend, team.account),
    actions: await decisionsOfTurn(backend, turn),
  }
}
