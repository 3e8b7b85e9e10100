import t from 'tap'
import {
  pendingPartition,
  sharedMemoryFilter,
  sharedMemoryFromDocument,
  type SharedMemory,
} from '#shared/org/memories/shared-memories.mongo.ts'
import { type Decision } from '#shared/org/base/org-turns.postgres.ts'
import { createTestClient } from '#test/support/start/api.ts'
import { seedTeamMemories, type Team } from '#test/support/start/team.ts'
import type { OrgExtractJob } from '#shared/domain/job-payloads.ts'
import { createPasses, startTeamService } from '#test/support/start/working-team.ts'

// No worker runs: passes are run by hand, so that roles can change between them.
const service = await startTeamService(t, { working: false })
const { backend, base, model, newTeam } = service
const { extract, tag, reconcile, said } = createPasses(service)

t.beforeEach(model.reset)

async function teamWith(...labels: string[]): Promise<Team> {
  const team = await newTeam(labels)
  await team.defineRole('Money', ['finance'])
  await team.defineRole('All', ['*'])
  return team
}

/** What a member said, found and tagged; what to do about it is not decided yet. */
async function tagged(key: string, content: string): Promise<OrgExtractJob> {
  const [job] = await said(key, content)
  await extract(job)
  await tag(job)
  return job
}

const decided = async (job: OrgExtractJob): Promise<Decision[]> => (await reconcile(job)).pass3!

const saysNow = async (key: string, content: string): Promise<Decision[]> =>
  decided(await tagged(key, content))

async function sharedBy(team: Team): Promise<SharedMemory[]> {
  const rows = await backend.mongo.memories
    .find({ ...sharedMemoryFilter(team), session: { $in: ['', pendingPartition] } })
    .sort({ _id: 1 })
    .toArray()
  return rows.map(sharedMemoryFromDocument)
}

const textsOf = (rows: readonly { text: string }[]): string[] => rows.map(({ text }) => text)

const found = { reviewed: false, confidence: 0.9 }
const budget = { text: 'budget: 5 million', tags: ['finance'], ...found }

t.test('what the author may not see is neither shown to the model nor changed', async t => {
  const team = await teamWith()
  const [id] = await seedTeamMemories(backend, team, [budget])
  const outsider = await team.addMember('out@example.com')
  const pass3 = await saysNow(outsider, 'Fact: budget: 1 cent')
  t.match(pass3, [{ action: 'ADD' }])
  t.equal(model.count('reconcile'), 0, 'there is nothing to ask about')
  t.same(textsOf(await sharedBy(team)), ['budget: 5 million', 'budget: 1 cent'])

  const insider = await team.addMember('in@example.com', ['Money'])
  t.match(await saysNow(insider, 'Fact: budget: 6 million'), [{ action: 'UPDATE' }])
  const shown = model.calls.at(-1)!.userPrompt.memories
  t.same(textsOf(shown).sort(), ['budget: 1 cent', 'budget: 5 million'])
  t.notSame(id, undefined)
})

t.test('a role that is lost or given meanwhile counts when it is decided', async t => {
  const team = await teamWith()
  const [id] = await seedTeamMemories(backend, team, [budget])
  const key = await team.addMember('ann@example.com', ['Money'])
  const early = await tagged(key, 'Fact: budget: 6 million')
  await team.assignRoles('ann@example.com', [])
  t.match(await decided(early), [{ action: 'ADD' }])

  const late = await tagged(key, 'Fact: budget: 7 million')
  await team.assignRoles('ann@example.com', ['All'])
  model.scriptAnswers('reconcile', ({ userPrompt }) => {
    const { memory } = userPrompt.memories.find(({ text }: { text: string }) => /5/.test(text))
    const update = { fact: 0, action: 'UPDATE', memory, text: 'budget: 7 million' }
    return JSON.stringify({ decisions: [update] })
  })
  t.match(await decided(late), [{ action: 'UPDATE', mem_id: id }])
})

t.test('what the author will not see either is not shared twice', async t => {
  const team = await teamWith('finance')
  const text = 'budget: 5 million #finance'
  const [id] = await seedTeamMemories(backend, team, [{ ...budget, text }])
  const outsider = await team.addMember('out@example.com')
  const again = await saysNow(outsider, `Fact: ${text}`)
  t.match(again, [{ action: 'NONE', mem_id: id }])

  const other = await saysNow(outsider, 'Fact: budget: 1 cent #finance')
  t.match(other, [{ action: 'ADD' }], 'an update is none of theirs')
  t.same(textsOf(await sharedBy(team)), [text, 'budget: 1 cent #finance'])

  // The author would see that this is missing.
  model.scriptAnswers('tag', ({ userPrompt }) => {
    const [{ id }] = userPrompt.questions
    return JSON.stringify({ facts: [{ fact: 0, answers: { [id]: 0 } }] })
  })
  model.calls.length = 0
  t.match(await saysNow(outsider, `Fact: ${text}`), [{ action: 'ADD' }])
  t.equal(model.count('reconcile'), 0)
})

t.test('a fact is kept for those who may not see the memory that says it', async t => {
  const team = await teamWith('finance', 'board')
  const text = 'budget: 5 million #finance'
  await seedTeamMemories(backend, team, [{ ...budget, text, tags: ['finance', 'board'] }])
  const outsider = await team.addMember('out@example.com')
  t.match(await saysNow(outsider, `Fact: ${text}`), [{ action: 'ADD' }])
  t.equal(model.count('reconcile'), 0)
})

t.test('the words of a memory are drawn from what all its readers may see', async t => {
  const team = await teamWith('finance')
  const [open, secret] = await seedTeamMemories(backend, team, [
    { text: 'launch: on May 5', ...found },
    { text: 'launch budget: 7 million', tags: ['finance'], ...found },
  ])
  const key = await team.addMember('ann@example.com', ['All'])
  const talkative = ({
    userPrompt,
  }: {
    userPrompt: { memories: { memory: string; text: string }[] }
  }) => {
    const { memory } = userPrompt.memories.find(({ text }) => text.startsWith('launch:'))!
    const text = userPrompt.memories.map(one => one.text).join(', ')
    return JSON.stringify({ decisions: [{ fact: 0, action: 'UPDATE', memory, text }] })
  }
  model.scriptAnswers('reconcile', talkative, talkative)
  t.match(await saysNow(key, 'Fact: launch: on June 7'), [{ action: 'UPDATE', mem_id: open }])
  t.equal(model.count('reconcile'), 2)
  t.same(textsOf(model.calls.at(-1)!.userPrompt.memories), ['launch: on May 5'])
  t.same(textsOf(await sharedBy(team)), ['launch: on May 5', 'launch budget: 7 million'])

  // Nor from another fact of the same turn; what has more readers may go into what has fewer.
  const factsOfCalls = (): number[] =>
    model.calls
      .filter(({ pass }) => pass === 'reconcile')
      .map(({ userPrompt }) => userPrompt.facts.length)
  const changesBoth = [
    { action: 'UPDATE', mem_id: open },
    { action: 'UPDATE', mem_id: secret },
  ]
  model.calls.length = 0
  model.scriptAnswers('reconcile', ({ userPrompt }) => {
    const named = (start: string): string =>
      userPrompt.memories.find(({ text }: { text: string }) => text.startsWith(start)).memory
    const mixed = { text: 'launch: on June 8 for 8 million', memory: named('launch:') }
    const own = { text: 'launch budget: 8 million', memory: named('launch budget:') }
    const decisions = [mixed, own].map((one, fact) => ({ fact, action: 'UPDATE', ...one }))
    return JSON.stringify({ decisions })
  })
  const facts = 'Fact: launch: on June 8\nFact: launch budget: 8 million #finance'
  t.match(await saysNow(key, facts), changesBoth)
  t.same(factsOfCalls(), [2, 1])
  t.notMatch(textsOf(await sharedBy(team))[0], /million/)

  // A wording of nothing but the fact's own words and the memory's is not asked about again.
  model.calls.length = 0
  const later = 'Fact: launch: on June 9\nFact: launch budget: 9 million #finance'
  t.match(await saysNow(key, later), changesBoth)
  t.same(factsOfCalls(), [2])
})

t.test('a correction of what a person has reviewed waits beside it', async t => {
  const team = await teamWith()
  const [id] = await seedTeamMemories(backend, team, [{ text: 'launch: on May 5' }])
  const key = await team.addMember('ann@example.com')
  const [decision] = await saysNow(key, 'Fact: launch: on June 7')
  t.match(decision, { action: 'ADD', text: 'launch: on June 7', replaces: id })
  const [old, added] = await sharedBy(team)
  t.match(old, { id, text: 'launch: on May 5', reviewed: true, version: 1 })
  t.match(added, {
    id: decision!.mem_id,
    author: 'ann@example.com',
    reviewed: false,
    pending: true,
  })

  const admin = createTestClient(base, team.adminKey)
  const queue = await admin.get(`/v1/orgs/${team.org}/memories/review`)
  t.match(queue.body.review, [
    { mem_id: added!.id, confidence: 0.5, pass: { pass3: [{ action: 'ADD', replaces: id }] } },
  ])
  const trail = await admin.get(`/v1/orgs/${team.org}/debug/passes`)
  t.match(trail.body.passes, [{ pass3: [{ replaces: id }] }])

  t.match(await saysNow(key, 'Fact: launch: on June 7'), [{ action: 'NONE', mem_id: added!.id }])
})

t.test('so do corrections of words that an admin wrote or took back', async t => {
  const team = await teamWith()
  const [id] = await seedTeamMemories(backend, team, [{ text: 'launch: on May 5', ...found }])
  const key = await team.addMember('ann@example.com')
  const admin = createTestClient(base, team.adminKey)
  const path = `/v1/orgs/${team.org}/memories/${id}`
  t.match(await saysNow(key, 'Fact: launch: on May 6'), [{ action: 'UPDATE' }], 'nobody’s yet')

  t.match(await admin.send('PATCH', path, { body: { tags: ['launch'] } }), { status: 200 })
  await team.defineRole('Launch', ['launch'])
  await team.assignRoles('ann@example.com', ['Launch'])
  t.match(await saysNow(key, 'Fact: launch: on May 7'), [{ action: 'UPDATE' }], 'tags are no words')

  t.match(await admin.send('PATCH', path, { body: { text: 'launch: cancelled' } }), { status: 200 })
  t.match(await saysNow(key, 'Fact: launch: on May 8'), [{ action: 'ADD', replaces: id }])
  t.match(await admin.send('PATCH', path, { body: { tags: [] } }), { status: 200 })
  t.match(await admin.send('PATCH', path, { body: { reviewed: false } }), { status: 200 })
  const memory = (await sharedBy(team)).find(row => row.id === id)
  t.match(memory, { text: 'launch: cancelled', byHand: true })

  const [other] = await seedTeamMemories(backend, team, [{ text: 'floor: 3', ...found }])
  await saysNow(key, 'Fact: floor: 4')
  const restored = await admin.post(`/v1/orgs/${team.org}/memories/${other}/restore`, {})
  t.match(restored, { status: 200, body: { text: 'floor: 3' } })
  t.match(await saysNow(key, 'Fact: floor: 5'), [{ action: 'ADD', replaces: other }])
})

t.test('approved meanwhile: the decision is made again', async t => {
  const team = await teamWith()
  const [id] = await seedTeamMemories(backend, team, [
    { text: 'launch: on May 5', reviewed: false, confidence: 0.4 },
  ])
  const key = await team.addMember('ann@example.com')
  const job = await tagged(key, 'Fact: launch: on June 7')
  const admin = createTestClient(base, team.adminKey)
  model.scriptAnswers('reconcile', async ({ userPrompt }) => {
    const path = `/v1/orgs/${team.org}/memories/${id}/review`
    t.match(await admin.post(path, { action: 'approve' }), { status: 200 })
    const [{ memory }] = userPrompt.memories
    const update = { fact: 0, action: 'UPDATE', memory, text: 'launch: on June 7' }
    return JSON.stringify({ decisions: [update] })
  })
  t.match(await decided(job), [{ action: 'ADD', replaces: id }])
  t.match(await sharedBy(team), [{ text: 'launch: on May 5', reviewed: true }, { confidence: 0.5 }])
})
