import t from 'tap'
import { createTestClient } from '#test/support/start/api.ts'
import { seedTeamMemories } from '#test/support/start/team.ts'
import { startTeamService, type WorkingTeam } from '#test/support/start/working-team.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { countOpenTurns } from '#test/support/checks/observe-jobs.ts'

const { base, backend, model, newTeam, finished } = await startTeamService(t)

const turnsDone = (): Promise<void> =>
  waitUntil('the turns are done', async () => (await countOpenTurns(backend)) === 0)

t.beforeEach(model.reset)

/** Ingests one exchange in a session and waits until its passes are done. */
async function saysIn(
  team: WorkingTeam,
  text: string,
  session: string,
  options: { as?: string; headers?: Record<string, string> } = {},
): Promise<void> {
  const messages = [
    { role: 'user', content: text },
    { role: 'assistant', content: `About that: ${text.slice(0, 20)}` },
  ]
  const client = createTestClient(base, options.as ?? team.key)
  const { body } = await client.post(
    '/v1/memory/ingest',
    { messages, session_id: session },
    options.headers,
  )
  await finished(body.operation_id as string)
  await turnsDone()
}

/** What the last extraction was shown of the turns before. */
const shownBefore = (): string[] => {
  const { userPrompt } = model.calls.findLast(({ pass }) => pass === 'extract')!
  return (userPrompt.before ?? []).map(({ text }: { text: string }) => text)
}

t.test('the extractor sees the turns before in the same session, bounded', async t => {
  const acme = await newTeam()
  await saysIn(acme, 'The Atlas project starts now', 'one')
  t.same(shownBefore(), [])
  await saysIn(acme, 'Its deadline moved to May 5', 'one')
  t.same(shownBefore(), ['The Atlas project starts now', 'About that: The Atlas project st'])
  await saysIn(acme, 'Another matter of mine', 'two')
  t.same(shownBefore(), [], 'not those of another session')
  const bob = await acme.addMember('bob@example.com')
  await saysIn(acme, 'A matter of another member', 'one', { as: bob })
  t.same(shownBefore(), [], 'nor of another member')
  for (let n = 0; n < 4; n++) await saysIn(acme, `word ${n} ${'long '.repeat(400)}`, 'one')
  const shown = shownBefore()
  t.equal(shown.length, 6)
  t.ok(shown.every(text => text.length <= 600))
})

t.test('what a rule withholds, and what was cleared, is no context', async t => {
  const acme = await newTeam()
  await acme.admin.send('PUT', `/v1/orgs/${acme.org}/instructions`, {
    body: { anti_rules: [{ match: 'salary' }] },
  })
  await saysIn(acme, 'The salary of Eve is 90k', 'one')
  await saysIn(acme, 'She starts in May', 'one')
  t.same(shownBefore(), [])
  await createTestClient(base, acme.key).send('DELETE', '/v1/memory?session_id=one')
  await saysIn(acme, 'And Finn in June', 'one')
  t.same(shownBefore(), [])
})

t.test('the tagger sees who said it, and what else was said with it', async t => {
  const acme = await newTeam(['finance'])
  await acme.share('Fact: floor: 3\nFact: roof: red')
  const { userPrompt } = model.calls.find(({ pass }) => pass === 'tag')!
  t.match(userPrompt, {
    member: 'ada@example.com',
    facts: [{ text: 'floor: 3' }, { text: 'roof: red' }],
  })
})

/** A call of a member through the proxy, of which the extractor takes one fact. */
async function chats(team: WorkingTeam, said: string, answer: string, fact: string): Promise<void> {
  model.scriptAnswers('chat', answer)
  const facts = [{ turn: 0, text: fact, note: false, confidence: 0.9 }]
  model.scriptAnswers('extract', JSON.stringify({ facts }))
  const { status } = await createTestClient(base, team.key).post('/v1/chat/completions', {
    model: 'openai/chat',
    messages: [
      { role: 'system', content: 'You are kind.' },
      { role: 'user', content: said },
    ],
  })
  t.equal(status, 200)
  await turnsDone()
}

t.test('what a model says from restricted memory stays restricted', async t => {
  const acme = await newTeam(['finance', 'people'])
  await seedTeamMemories(backend, acme, [
    { text: 'The budget of Atlas is 5 million', tags: ['finance'] },
  ])
  const question = 'What is the budget of Atlas?'
  const answer = 'The Atlas budget amounts to 5 million euros.'
  await chats(acme, question, answer, 'Atlas has a budget of 5 million euros')
  const asked = model.calls.find(({ pass }) => pass === 'chat')!
  t.match(JSON.stringify(asked.body), /memory_context/, 'the model was told')
  const derived = (await acme.memories()).find(({ text }) => text.startsWith('Atlas has'))
  t.same(derived?.tags, ['finance'])
})

t.test('the member’s own words are as open as they are', async t => {
  const acme = await newTeam(['finance'])
  await seedTeamMemories(backend, acme, [
    { text: 'The budget of Atlas is 5 million', tags: ['finance'] },
  ])
  const said = 'What is the budget of Atlas? By the way, the kitchen of Atlas opens on Monday.'
  await chats(acme, said, 'It is 5 million.', 'The kitchen of Atlas opens on Monday')
  const open = (await acme.memories()).find(({ text }) => text.startsWith('The kitchen'))
  t.same(open?.tags, [])
})

t.test('so does what a member’s own program was given before it stored the exchange', async t => {
  const acme = await newTeam(['finance'])
  await seedTeamMemories(backend, acme, [
    { text: 'The budget of Atlas is 5 million', tags: ['finance'] },
  ])
  const client = createTestClient(base, acme.key)
  const question = { role: 'user', content: 'What is the budget of Atlas?' }
  const { body } = await client.post('/v1/memory/prepare', { messages: [question] })
  t.match(JSON.stringify(body), /5 million/)
  await backend.retrievals.flush()
  const fact = {
    turn: 0,
    text: 'Atlas has a budget of 5 million euros',
    note: false,
    confidence: 0.9,
  }
  model.scriptAnswers('extract', JSON.stringify({ facts: [fact] }))
  const answer = { role: 'assistant', content: 'The Atlas budget amounts to 5 million euros.' }
  const stored = await client.post('/v1/memory/ingest', { messages: [question, answer] })
  await finished(stored.body.operation_id as string)
  const derived = (await acme.memories()).find(({ text }) => text.startsWith('Atlas has'))
  t.same(derived?.tags, ['finance'])
})

t.test('one fact changes several memories', async t => {
  const acme = await newTeam()
  await acme.share('Fact: Atlas owner: Nora')
  await acme.share('Fact: Atlas contact: Nora')
  model.scriptAnswers('reconcile', ({ userPrompt }) =>
    JSON.stringify({
      decisions: userPrompt.memories.map(({ memory, text }: { memory: string; text: string }) => ({
        fact: 0,
        action: 'UPDATE',
        memory,
        text: text.replace('Nora', 'Paul'),
      })),
    }),
  )
  await acme.share('Fact: Atlas handover: from Nora to Paul')
  const texts = (await acme.memories()).map(({ text }) => text)
  t.same(texts.toSorted(), ['Atlas contact: Paul', 'Atlas owner: Paul'])
})
