import t from 'tap'
import { sweepAll } from '#workers/sweep-all.ts'
import { createTestClient, startJobWorkers } from '#test/support/start/api.ts'
import { chatCompletion } from '#test/support/doubles/chat-stream.ts'
import { insertMemories, readDocuments } from '#test/support/start/insert-memories.ts'
import { respondError, respondJson } from '#test/support/doubles/model-provider/answers.ts'
import { startProxyFixture } from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { waitUntilIdle } from '#test/support/checks/observe-jobs.ts'

/** What is stored of turns that are stopped, private, repeated, or in a session of a program. */

const world = await startProxyFixture(t)
const { backend, base, owner, provider, newKey } = world
await startJobWorkers(backend)

const user = (content: string, more: object = {}) => ({ role: 'user', content, ...more })
const assistant = (content: string) => ({ role: 'assistant', content })

type Asking = { headers?: Record<string, string>; query?: string; more?: object }

async function ask(key: string, messages: object[], { headers, query = '', more }: Asking = {}) {
  const response = await fetch(`${base}/v1/chat/completions${query}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-memory-key': key, ...headers },
    body: JSON.stringify({ model: 'gpt-5-mini', messages, ...more }),
  })
  await response.text()
  await waitUntilIdle(backend)
  return response
}

const answerWith = (text: string): void => provider.respondAlways(respondJson(chatCompletion(text)))

const rowsOf = async (key: string): Promise<string[]> => {
  await sweepAll(backend)
  await waitUntilIdle(backend)
  return (await readDocuments(backend, key)).map(({ text }) => text).toSorted()
}

const first = 'My cat is called Ada.'
const second = 'She is three years old.'

t.test('a turn that failed is not stored again before the next message', async t => {
  const key = await newKey()
  provider.respondAlways(respondError('openai', 500))
  await ask(key, [user(first)])
  answerWith('How lovely!')
  await ask(key, [user(first), user(second)])
  t.same(await rowsOf(key), ['How lovely!', first, second].toSorted())
})

t.test('nor is one whose answer the client leaves out', async t => {
  const key = await newKey()
  answerWith('Noted.')
  await ask(key, [user(first)])
  await ask(key, [user(first), user(second)])
  await ask(key, [user(first), user(second), user('Bye')])
  t.same(await rowsOf(key), [first, second, 'Bye', 'Noted.', 'Noted.', 'Noted.'].toSorted())
})

t.test('the same words in another turn are said again', async t => {
  const key = await newKey()
  answerWith('Noted.')
  await ask(key, [user(first)])
  await ask(key, [user(first), assistant('Noted.'), user(first)])
  t.same(await rowsOf(key), [first, first, 'Noted.', 'Noted.'].toSorted())
})

t.test(
  'what is not to be kept is not, in its tool loop neither; the answer has its own switch',
  async t => {
    const pin = user('My PIN is 1234.')
    const hidden = user('My PIN is 1234.', { memory: false })
    const loop = [
      { role: 'assistant', content: 'Let me see.', tool_calls: [{ id: 'c', type: 'function' }] },
      { role: 'tool', tool_call_id: 'c', content: 'It is valid.' },
    ]
    const switches: [object, Asking][] = [
      [pin, { headers: { 'x-memory-store': 'false' } }],
      [pin, { query: '?store=false' }],
      [pin, { more: { memory_store: false } }],
      [hidden, {}],
    ]
    const answer = 'It is valid, noted.'
    answerWith(answer)
    for (const [message, asking] of switches) {
      const key = await newKey()
      await ask(key, [message, ...loop], asking)
      t.same(await rowsOf(key), [answer], JSON.stringify([message, asking]))
      const silent = await newKey()
      const more = { ...asking.more, memory_store_response: false }
      await ask(silent, [message], { ...asking, more })
      await ask(silent, [message, ...loop], { ...asking, more })
      t.same(await rowsOf(silent), [], JSON.stringify([message, asking]))
    }
  },
)

t.test('a turn that comes here first with the result of a tool is stored, once', async t => {
  const key = await newKey()
  const parcel = user('My parcel number is PX-88; where is it?')
  const step = (id: string) => [
    { role: 'assistant', tool_calls: [{ id, type: 'function' }] },
    { role: 'tool', tool_call_id: id, content: 'locker 12' },
  ]
  answerWith('It waits at locker 12.')
  const before = [user('Hello'), assistant('Hi.')]
  const stored = [parcel.content, 'It waits at locker 12.']
  await ask(key, [...before, parcel, ...step('a')])
  t.same(await rowsOf(key), stored.toSorted())
  // The next steps, the second with a history that the client has cut.
  await ask(key, [...before, parcel, ...step('a'), ...step('b')])
  await ask(key, [parcel, ...step('a'), ...step('b'), ...step('c')])
  t.same(await rowsOf(key), [...stored, stored[1]!, stored[1]!].toSorted())
  const usual = await newKey()
  await ask(usual, [parcel])
  await ask(usual, [parcel, ...step('a')])
  t.same(await rowsOf(usual), [...stored, stored[1]!].toSorted())
  const { status } = await createTestClient(base, usual).send('DELETE', '/v1/memory', {
    headers: { 'x-session-id': 'another' },
  })
  t.equal(status, 200)
  await ask(usual, [parcel, ...step('a'), ...step('b')])
  t.equal((await rowsOf(usual)).filter(text => text === parcel.content).length, 1)
})

t.test('with the policy with_input an answer is kept only where its input is', async t => {
  const put = async (body: object) =>
    t.equal((await owner.send('PUT', '/v1/account/policy', { body })).status, 200)
  const redaction = { mode: 'block', kinds: ['card'] }
  const card = user('My card is 4111 1111 1111 1111.')
  answerWith('Your card ends in 1111.')
  await put({ redaction })
  const open = await newKey()
  await ask(open, [card])
  t.same(await rowsOf(open), ['Your card ends in 1111.'])
  await put({ store_response: 'with_input' })
  const bound = await newKey()
  await ask(bound, [card])
  await ask(bound, [user('My PIN is 1234.', { memory: false })])
  await ask(bound, [user('My PIN is 4321.')], { query: '?store=false' })
  t.same(await rowsOf(bound), [])
  await put({ redaction: { mode: 'off' }, store_response: 'always' })
})

t.test('a session of a program lives in the core, a session of the client apart', async t => {
  answerWith('Noted.')
  const sent: [Asking, status: RegExp, isCore: boolean][] = [
    [{ headers: { 'x-session-id': 's' } }, /^\w+$/, false],
    [{ headers: { 'x-session-id': 's', 'x-memory-sessions': 'core' } }, /; sessions=core$/, true],
    [{ headers: { 'x-session-id': 's' }, query: '?sessions=core' }, /; sessions=core$/, true],
    [
      { headers: { 'x-session-id': 'ses_1', 'user-agent': 'opencode/1.18.33' } },
      /; sessions=core$/,
      true,
    ],
    [
      { headers: { 'x-session-id': 'ses_1', 'x-session-affinity': 'ses_1' } },
      /sessions=core/,
      true,
    ],
    [
      {
        headers: {
          'x-session-id': 'ses_1',
          'user-agent': 'opencode/1.18.33',
          'x-memory-sessions': 'apart',
        },
      },
      /^\w+$/,
      false,
    ],
    [{ headers: { 'x-session-id': 'ses_1' } }, /^\w+$/, false],
  ]
  for (const [asking, status, isCore] of sent) {
    const key = await newKey()
    const response = await ask(key, [user(first)], asking)
    t.match(response.headers.get('x-memory-status'), status, JSON.stringify(asking))
    t.equal(response.headers.get('x-session-id'), asking.headers!['x-session-id'], 'echoed')
    const documents = await readDocuments(backend, key)
    t.equal(
      documents.every(({ session }) => !session),
      isCore,
    )
    t.equal(documents.length, 2)
  }
  const refused = await ask(await newKey(), [user(first)], {
    headers: { 'x-memory-sessions': 'none' },
  })
  t.equal(refused.status, 400)
})

t.test('of ingest and prepare too the query says that a session lives in the core', async t => {
  const key = await newKey()
  const client = createTestClient(base, key)
  for (const [sessions, said] of [
    ['core', first],
    ['apart', 'My dog is called Bob.'],
  ] as const) {
    const query = `wait=true&session_id=s&sessions=${sessions}`
    const messages = [user(said)]
    t.equal((await client.post(`/v1/memory/ingest?${query}`, { messages })).status, 200)
  }
  const documents = await readDocuments(backend, key)
  t.same(
    new Map(documents.map(({ text, session }) => [text, session])),
    new Map([
      [first, ''],
      ['My dog is called Bob.', 's'],
    ]),
  )
  const messages = [user('What is my dog called?')]
  for (const [query, isTold] of [
    ['session_id=s', true],
    ['session_id=s&sessions=apart', true],
    ['session_id=s&sessions=core', false],
  ] as const) {
    const { status, body } = await client.post(`/v1/memory/prepare?${query}`, { messages })
    t.equal(status, 200)
    t.equal(/Bob/.test(body.context ?? ''), isTold, query)
  }
  t.equal((await client.post('/v1/memory/ingest?sessions=none', { messages })).status, 400)
  const search = { query: 'dog', limit: 1 }
  t.equal((await client.post('/v1/memory/search?sessions=core', search)).status, 400)
})

t.test('a proxied text is read once: what it quotes stays', async t => {
  const reminder = '<system-reminder>\nhi\n</system-reminder>'
  const quoted = `Why do I see this?\n${reminder}`
  const asked = `<user_query>\n${quoted}\n</user_query>`
  const proxied = await newKey()
  provider.respondNext(respondJson(chatCompletion('plan</think>Close it with </think> first.')))
  t.equal((await ask(proxied, [user(asked)])).status, 200)
  await waitUntilIdle(backend)
  t.same(await rowsOf(proxied), ['Close it with </think> first.', quoted].toSorted())
})

t.test('ingest stores as it was sent; prepare asks without what programs write', async t => {
  const key = await newKey()
  const client = createTestClient(base, key)
  const reminder = '<system-reminder>\nUse tabs.\n</system-reminder>'
  const messages = [
    user(`${reminder}\n${first}`),
    { ...assistant('Let me look.'), tool_calls: [{ id: 'c', type: 'function' }] },
    { role: 'tool', content: 'red' },
    assistant('<think>\nA cat.\n</think>\nHow lovely!'),
  ]
  const { body } = await client.post('/v1/memory/ingest', { messages })
  t.match(body, { accepted: true, left_out: {} })
  await waitUntilIdle(backend)
  const sent = messages.flatMap(({ role, content }) => (role === 'tool' ? [] : [content]))
  t.same(await rowsOf(key), sent.toSorted())

  await insertMemories(backend, key, [{ text: 'The vet of Ada is in Porto.' }])
  const prepared = async (content: string) =>
    (await client.post('/v1/memory/prepare', { messages: [user(content)] })).body as {
      context: string | null
    }
  t.match(await prepared(`${reminder}\nWhere is the vet of Ada?`), { context: /Porto/ })
  t.same(
    (await prepared(`Generate a title for this conversation:\nWhere is the vet of Ada?`)).context,
    null,
  )
})
