import t from 'tap'
import {
  buildKey,
  createTestClient,
  startTestApi,
  startJobWorkers,
} from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { startEmbeddingProvider } from '#test/support/doubles/embedding-provider.ts'
import { chatCompletion } from '#test/support/doubles/chat-stream.ts'
import { respondJson } from '#test/support/doubles/model-provider/answers.ts'
import { startModelProvider, providerKey } from '#test/support/doubles/model-provider.ts'
import { buildTeam, seedTeamMemories } from '#test/support/start/team.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { readDocuments, insertMemories } from '#test/support/start/insert-memories.ts'

/** What the request says itself, the block does not say again. */

const provider = await startModelProvider(t)
const embeddings = await startEmbeddingProvider(t)
const backend = await createTestBackend(t, {
  env: { ...provider.env, OLLAMA_BASE_URL: embeddings.baseUrl },
})
await startJobWorkers(backend)
const { base, post } = await startTestApi(t, backend)

type Said = { role: string; content: unknown; memory?: boolean }

async function linesFor(key: string, messages: readonly Said[], more: object = {}) {
  const { status, body } = await post(
    '/v1/memory/prepare',
    { messages, ...more },
    { 'x-memory-key': key },
  )
  if (status !== 200) throw new Error(`status ${status}`)
  const { context, memories_found: found } = body as {
    context: string | null
    memories_found: number
  }
  const lines = context === null ? [] : context.split('\n').slice(1, -2)
  if (lines.length !== found) throw new Error(`${lines.length} lines, ${found} found`)
  return lines.map(line => line.replace(/^\[.*?\] /, ''))
}

const bicycle = (index: number): string =>
  `My bicycle number ${index} has the colour ${'red green blue white'.split(' ')[index % 4]}.`
const user = (content: unknown): Said => ({ role: 'user', content })

t.test('200: turns of the request are left out, and others take their places', async t => {
  const key = await buildKey(backend)
  const texts = Array.from({ length: 40 }, (_, index) => bicycle(index))
  await insertMemories(
    backend,
    key,
    texts.map(text => ({ text })),
  )
  const asked = user('Which colour has my bicycle?')
  const all = await linesFor(key, [asked], { context_limit: 10 })
  t.equal(all.length, 10)
  const said = [
    ...all.map((content, index) => ({ role: index % 2 ? 'assistant' : 'user', content })),
    asked,
  ]
  const rest = await linesFor(key, said, { context_limit: 10 })
  t.equal(rest.length, 10, 'the limit is filled')
  const again = rest.filter(text => all.includes(text))
  t.same(again, [])
  const every = [...texts.map(user), asked]
  t.same(await linesFor(key, every, { context_limit: 10 }), [])
  t.same(await linesFor(key, [...texts.slice(1).map(user), asked]), [bicycle(0)])
})

t.test('200: of any place, in any form', async t => {
  const key = await buildKey(backend)
  await insertMemories(backend, key, [
    { text: ' My caf\u00e9 has a bicycle that is orange.\n' },
    { text: 'My bicycle is orange, and it has two parts.\nThis is the second.' },
    { text: 'Who rides a bicycle likes orange.', tier: 2, importance: 5 },
  ])
  const asked = user('Is my bicycle orange?')
  t.equal((await linesFor(key, [asked])).length, 3)
  const early = { ...user('My cafe\u0301 has a bicycle that is orange.'), memory: false }
  const parts = user([
    { type: 'text', text: 'My bicycle is orange, and it has two parts.' },
    { type: 'text', text: 'This is the second.' },
  ])
  const between = Array.from({ length: 30 }, (_, index) => user(`The weather is number ${index}.`))
  t.same(await linesFor(key, [early, parts, ...between, asked]), [
    'Who rides a bicycle likes orange.',
  ])
  t.equal((await linesFor(key, [{ ...early, role: 'system' }, asked])).length, 3)
})

t.test('200: what a team shares is left out, too', async t => {
  const team = await buildTeam(backend)
  await team.defineRole('all', ['*'])
  const key = await team.addMember('ann', ['all'])
  await seedTeamMemories(backend, team, [
    { text: 'The bicycle of the team is orange.' },
    { text: 'The bicycle of the boss is orange.' },
  ])
  const asked = user('Which bicycle is orange?')
  t.equal((await linesFor(key, [asked])).length, 2)
  t.same(await linesFor(key, [user('The bicycle of the team is orange.'), asked]), [
    'The bicycle of the boss is orange.',
  ])
})

t.test('a chat with a model never recalls what it has said so far', async t => {
  const key = await buildKey(backend)
  await insertMemories(backend, key, [{ text: 'The bicycle of my sister is orange.' }])
  const essay = Array.from(
    { length: 80 },
    (_, index) => `Bicycle number ${index} of ${1900 + index} was painted ${index * 7919} times.`,
  ).join(' ')
  const answers = ['It is orange.', essay, 'A bicycle has two wheels.', 'Yes.']
  const messages: Said[] = []
  for (const [round, answer] of answers.entries()) {
    messages.push(user(`What do you know of the bicycle of my sister, for the ${round}th time?`))
    provider.respondNext(respondJson(chatCompletion(answer)))
    const call = { model: 'openai/gpt-5', messages }
    const headers = { 'x-provider-key': providerKey('openai') }
    const told = await createTestClient(base, key).post('/v1/chat/completions', call, headers)
    t.equal(told.headers.get('x-memory-status'), 'ok')
    const { messages: sent } = JSON.parse(provider.requests.at(-1)!.body.toString()) as {
      messages: Said[]
    }
    const block = String(sent.at(-2)!.content)
    t.match(block, 'sister is orange')
    t.equal(block.split('\n').length, 4, 'one line')
    messages.push({ role: 'assistant', content: answer })
    const held = 2 * round + 2
    await waitUntil('stored', async () => (await readDocuments(backend, key)).length > held)
  }
  // Its pieces may be stored before the last answer.
  await waitUntil('all is stored, one answer in pieces', async () => {
    return (await readDocuments(backend, key)).length > 2 * answers.length + 1
  })
})

t.test('a question and the turns before it are embedded by one call', async t => {
  const key = await buildKey(backend)
  const model = 'ollama/one'
  await insertMemories(backend, key, [{ text: bicycle(1) }], { embeddings: model })
  const turns = ['We talked of the shed. ', 'It is full. ', 'Of wheels. ', 'And of tyres. '].map(
    text => user(text.repeat(60)),
  )
  embeddings.bodies.length = 0
  const asked = [...turns, user('Which colour has my bicycle?')]
  t.same(await linesFor(key, asked, { embeddings: model }), [bicycle(1)])
  t.equal(embeddings.bodies.length, 1)
  t.ok(embeddings.bodies[0]!.input.some(text => text.includes('Of wheels.')))
})
