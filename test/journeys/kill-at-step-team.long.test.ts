import t from 'tap'
import { storeProviderKey } from '#shared/access/provider-key.ts'
import { finalizeStrandedWrites } from '#shared/org/memories/finalize-shared-writes.ts'
import { sharedMemoryFilter } from '#shared/org/memories/shared-memories.mongo.ts'
import { insertTag, makeSharedWritesDue } from '#test/support/checks/alter.ts'
import { createTestClient } from '#test/support/start/api.ts'
import { killAtSteps, type Scene } from '#test/support/checks/kill-at-step.ts'
import {
  auditEventsOf,
  decisionsOfTurn,
  storedDocuments,
  teamBillsOf,
} from '#test/support/checks/observe.ts'
import { countOpenTurns } from '#test/support/checks/observe-jobs.ts'
import { startTeamModel, type TeamModel } from '#test/support/doubles/team-model.ts'
import { buildTeam, seedTeamMemories } from '#test/support/start/team.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

t.setTimeout(0)
t.jobs = 2

/** The transactions of a turn that brings one change and one addition. */
const stepsOfTurn = {
  'before 1': 'with the extractor’s answer',
  'after 1': 'with that answer kept',
  'after 2': 'with pass 1 written',
  'after 3': 'with the classifier’s answer kept',
  'after 4': 'with pass 2 written',
  'after 5': 'with the answer about what is shared kept',
  'after 6': 'with pass 3 written',
  'before 7': 'with the change made and not told',
  'after 7': 'with the change told',
  'before 8': 'with the addition made and not told',
  'after 8': 'with the addition told',
  'after 9': 'with the turn finished',
}

/** The transactions of a batch of three turns, of which the last goes on from the first. */
const stepsOfBatch = {
  'before 1': 'with the answer about all three',
  'after 1': 'with that answer kept',
  'after 2': 'with the facts of all three written',
  'after 4': 'with the tags of all three written',
  'after 6': 'with the first two decided',
  'after 8': 'with the first one carried out',
}

/** A team with a provider key, a tag and a member who may see it; its facts have its name. */
async function newTeam({ backend, base }: Scene, name: string) {
  const team = await buildTeam(backend)
  const keys = { query: backend.postgres.query, seal: backend.seal }
  const owner = { account: team.account, actor: 'test' }
  await storeProviderKey(keys, owner, 'openai', 'sk-0123456789abcdef')
  await insertTag(backend, team.org, 'launch', 'Is it?')
  await team.defineRole('Launch', ['launch'])
  const client = createTestClient(base, await team.addMember('ada@example.com', ['Launch']))
  const say = async (content: string, more: { timestamp?: number; session_id?: string } = {}) => {
    const { timestamp, ...rest } = more
    const messages = [{ role: 'user', content, ...(timestamp && { timestamp }) }]
    const { body } = await client.post('/v1/memory/ingest', { messages, ...rest })
    return body.operation_id as string
  }
  return { ...team, name: name.replace(' ', '-'), say }
}

/** The passes that asked the model about a team. */
const callsOf = (model: TeamModel, name: string) =>
  model.calls
    .filter(({ userPrompt }) => JSON.stringify(userPrompt).includes(`launch ${name}:`))
    .map(({ pass }) => pass)

/** What was asked before the answer was kept is asked again. */
const callsWith = (at: string, calls: string[]) =>
  at === 'before 1' ? ['extract', ...calls] : calls

const dieAt = ({ at, turn, org }: { at: string; turn: string; org: string }) => ({
  at: `${at} commit ${org}|${turn}`,
  program: `node test/support/start/run-passes.ts ${turn}`,
})

const turnsDone = ({ backend }: Scene): Promise<void> =>
  waitUntil('the turns are done', async () => (await countOpenTurns(backend)) === 0)

killAtSteps(t, {
  'the passes of a turn: nothing is lost, doubled, or asked twice': {
    killed: 'worker',
    async begin(t, open) {
      const model = await startTeamModel(t)
      const scene = await open(model.env)
      const { backend } = scene
      const teams = await Promise.all(
        Object.entries(stepsOfTurn).map(async ([at, dies]) => {
          const team = await newTeam(scene, at)
          const launch = {
            text: `launch ${team.name}: on May 5`,
            tags: ['launch'],
            reviewed: false,
          }
          await seedTeamMemories(backend, team, [launch])
          const facts = `Fact: launch ${team.name}: on June 7 #launch\nFact: floor ${team.name}: 3`
          return { ...team, at, dies, turn: await team.say(facts) }
        }),
      )
      return {
        steps: teams.map(dieAt),
        async afterwards() {
          await turnsDone(scene)
          for (const { name, at, dies, turn, ...team } of teams) {
            t.same(callsOf(model, name), callsWith(at, ['extract', 'tag', 'reconcile']), dies)
            const rows = await backend.mongo.memories
              .find(sharedMemoryFilter(team))
              .sort({ _id: 1 })
              .toArray()
            const texts = [`launch ${name}: on June 7 #launch`, `floor ${name}: 3`]
            t.same(
              rows.map(({ text }) => text),
              texts,
              dies,
            )
            const events = await auditEventsOf(backend, team.org)
            const actions = events.map(({ action }) => action)
            t.same(actions, ['create', 'update', 'create'], dies)
            const memories = ['org-memory', 'org-memory', 'org-memory']
            const bills = ['org-extract', ...memories, 'org-reconcile', 'org-tag']
            t.same(await teamBillsOf(backend, team.account), bills, dies)
            t.same(await decisionsOfTurn(backend, turn), ['UPDATE', 'ADD'], dies)
          }
        },
      }
    },
  },

  'the passes of a batch of turns: nothing is lost, doubled, or asked twice': {
    killed: 'worker',
    async begin(t, open) {
      const model = await startTeamModel(t)
      const scene = await open(model.env)
      const { backend } = scene
      const teams = await Promise.all(
        Object.entries(stepsOfBatch).map(async ([at, dies]) => {
          const team = await newTeam(scene, at)
          const said = [`launch ${team.name}: May #launch`, `floor ${team.name}: 3`]
          const turns: string[] = []
          for (const [n, fact] of [...said, `launch ${team.name}: June #launch`].entries()) {
            const more = { timestamp: Date.UTC(2026, 2, 2 + n), session_id: 'one' }
            turns.push(await team.say(`Fact: ${fact}`, more))
          }
          return { ...team, at, dies, turn: turns[0]! }
        }),
      )
      return {
        steps: teams.map(dieAt),
        async afterwards() {
          await turnsDone(scene)
          for (const { name, at, dies, ...team } of teams) {
            const rows = await backend.mongo.memories.find(sharedMemoryFilter(team)).toArray()
            t.same(
              rows.map(({ text, at }) => `${text} ${at.toISOString().slice(0, 10)}`).toSorted(),
              [`floor ${name}: 3 2026-03-03`, `launch ${name}: June #launch 2026-03-04`],
              dies,
            )
            // The third is asked about once with the first two, and once when these are settled.
            const calls = ['extract', 'tag', 'reconcile', 'reconcile']
            t.same(callsOf(model, name), callsWith(at, calls), dies)
            const events = await auditEventsOf(backend, team.org)
            const actions = events.map(({ action }) => action)
            t.same(actions, ['create', 'create', 'update'], dies)
            const bills = await teamBillsOf(backend, team.account)
            t.equal(bills.filter(kind => kind === 'org-extract').length, 1, dies)
          }
        },
      }
    },
  },

  'an admin writes: the audit holds what was done, no more and no less': {
    killed: 'api',
    async begin(t, open) {
      const { backend } = await open()
      const team = await buildTeam(backend)
      /** What the admin asked for, and whether an answer came. */
      const asked: { memory: string; action: string; answered: boolean }[] = []
      const memories: string[] = []
      /** Changes one memory until the process is gone; no request is sent again. */
      const write = async (base: string, memory: string): Promise<void> => {
        const admin = createTestClient(base, team.adminKey)
        for (let n = 0; ; n++) {
          const action = n % 3 === 0 ? 'update' : 'retag'
          const entry = { memory, action, answered: false }
          asked.push(entry)
          const change = `${memory.slice(-4)} ${asked.length} ${n}`
          const body = action === 'update' ? { text: change } : { tags: [change] }
          const path = `/v1/orgs/${team.org}/memories/${memory}`
          entry.answered = (await admin.send('PATCH', path, { body })).status === 200
        }
      }
      const steps = [
        'before 5 update',
        'before 9 commit',
        'after 7 commit',
        'before 8 update',
        'before 4 commit',
      ]
      return {
        steps: steps.map((step, kill) => ({
          at: `${step} ${team.vault}`,
          async during(base) {
            // Six writers at once.
            const facts = Array.from({ length: 6 }, (_, n) => ({ text: `fact ${kill} ${n}` }))
            const own = await seedTeamMemories(backend, team, facts)
            memories.push(...own)
            await Promise.all(own.map(memory => write(base, memory)))
          },
        })),
        async afterwards() {
          const pending = await makeSharedWritesDue(backend)
          await finalizeStrandedWrites(backend)
          const events = await auditEventsOf(backend, team.org)
          const changes = events.filter(({ action }) => action !== 'create')
          const documents = await storedDocuments(backend, team.vault)
          t.same(documents.map(({ _id }) => _id).sort(), memories.toSorted())
          for (const { _id: memory, version } of documents) {
            const own = changes.filter(change => change.memory === memory)
            t.equal(own.length, version - 1, 'one event for each change of the document')
            for (const action of ['update', 'retag']) {
              const told = own.filter(change => change.action === action).length
              const mine = asked.filter(entry => entry.memory === memory && entry.action === action)
              const answered = mine.filter(entry => entry.answered).length
              t.ok(told >= answered && told <= mine.length, `${answered} answered, ${told} told`)
            }
          }
          const answered = asked.filter(entry => entry.answered).length
          t.ok(answered > steps.length, `${answered} of ${asked.length} changes were answered`)
          t.ok(pending > 0, 'changes were pending after the kills')
        },
      }
    },
  },
})
