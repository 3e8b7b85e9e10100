import t from 'tap'
import { buildKey, createTestClient, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { chatCompletion, chatCompletionEvents } from '#test/support/doubles/chat-stream.ts'
import { respondJson, respondWith } from '#test/support/doubles/model-provider/answers.ts'
import { startModelProvider, providerKey } from '#test/support/doubles/model-provider.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { resolveCaller, insertMemories } from '#test/support/start/insert-memories.ts'
import { setBalance } from '#test/support/checks/alter.ts'
import {
  countOperationsOfKind,
  countStoredModelAnswers,
} from '#test/support/checks/observe-jobs.ts'

const provider = await startModelProvider(t)
const backend = await createTestBackend(t, { env: provider.env })
const { base } = await startTestApi(t, backend)
const client = createTestClient(base)
const path = '/v1/chat/completions'
const sk = providerKey('openai')
const asks = (content: string, more: object = {}) => ({
  model: 'openai/gpt-5',
  messages: [{ role: 'user', content }],
  ...more,
})

async function sender() {
  const key = await buildKey(backend)
  const balance = async (amount: number | null) => {
    const { account } = await resolveCaller(backend, key)
    await setBalance(backend, { account }, amount)
  }
  const headers = { 'x-memory-key': key, authorization: `Bearer ${sk}` }
  const post = (idempotency: string, body: unknown, more: Record<string, string> = {}) =>
    client.post(path, body, { ...headers, 'idempotency-key': idempotency, ...more })
  return { balance, headers, post }
}

const promised = () => countOperationsOfKind(backend, 'proxy')

t.test('200: a call that is sent again is answered again, and made once', async t => {
  const { headers, post } = await sender()
  const text = chatCompletion('Once.').replaceAll(':', ': ')
  provider.respondNext(respondJson(text, { headers: { 'content-type': 'application/json; x=y' } }))
  const before = [provider.requests.length, await promised()]
  t.equal((await post('a', asks('hi'))).status, 200)
  const again = await fetch(base + path, {
    method: 'POST',
    headers: { ...headers, 'idempotency-key': 'a', 'content-type': 'application/json' },
    body: JSON.stringify(asks('hi')),
  })
  t.equal(again.status, 200)
  t.equal(again.headers.get('content-type'), 'application/json; x=y')
  t.equal(await again.text(), text, 'the same bytes')
  t.same([provider.requests.length, await promised()], [before[0]! + 1, before[1]! + 1])
})

t.test('200: answered again when the balance is used up; 402 for what is new', async t => {
  const { balance, post } = await sender()
  provider.respondNext(respondJson(chatCompletion('Paid.')))
  t.equal((await post('paid', asks('hi'))).status, 200)
  await balance(0)
  t.match(await post('paid', asks('hi')), { status: 200 })
  t.equal((await post('new', asks('hi'))).status, 402)
  await balance(null)
  provider.respondNext(respondJson(chatCompletion('Paid now.')))
  t.equal((await post('new', asks('hi'))).status, 200, 'the refused one holds nothing up')
})

t.test('400: the same key for another call', async t => {
  const { post } = await sender()
  provider.respondAlways(respondJson(chatCompletion('ok')))
  t.equal((await post('b', asks('hi'))).status, 200)
  for (const [body, headers] of [
    [asks('ho'), {}],
    [asks('hi'), { 'x-session-id': 's' }],
    [asks('hi'), { 'x-memory-mode': 'off' }],
  ] as const) {
    t.match(await post('b', body, headers), {
      status: 400,
      body: { error: { message: /another request/ } },
    })
  }
  t.equal((await post('x'.repeat(257), asks('hi'))).status, 400)
  provider.respondAlways()
})

t.test('400: of a body that holds too much to be parsed, the bytes are compared', async t => {
  const { post } = await sender()
  provider.respondAlways(respondJson(chatCompletion('ok')))
  const off = { 'x-memory-mode': 'off' }
  const deep = JSON.parse('['.repeat(70) + ']'.repeat(70)) as unknown
  const wide = Array.from({ length: 100_001 }, () => ({}))
  const named = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`name ${at}`, at]))
  for (const [name, x, status] of [
    ['small', [[]], 200],
    ['deep', deep, 400],
    ['wide', wide, 400],
    ['named', named, 400],
  ] as const) {
    const { model, messages } = asks('hi')
    t.equal((await post(name, { model, messages, x }, off)).status, 200, name)
    t.equal((await post(name, { model, messages, x }, off)).status, 200, `${name}, the same bytes`)
    t.equal((await post(name, { x, messages, model }, off)).status, status, `${name}, reordered`)
  }
  provider.respondAlways()
})

t.test('409: while the first runs; twenty at once make one call', async t => {
  const { post } = await sender()
  let release = (): void => {}
  const held = new Promise<void>(resolve => (release = resolve))
  const asked = provider.requests.length
  provider.respondAlways(async (seen, answer) => {
    await held
    await respondJson(chatCompletion('ok'))(seen, answer)
  })
  const statuses: number[] = []
  const answers = Array.from({ length: 20 }, async () =>
    statuses.push((await post('c', asks('hi'))).status),
  )
  await waitUntil('all others are told to wait', () => statuses.length === 19)
  t.same([...new Set(statuses)], [409])
  release()
  await Promise.all(answers)
  t.equal(statuses.at(-1), 200)
  t.equal(provider.requests.length, asked + 1)
  t.equal((await post('c', asks('hi'))).status, 200)
  t.equal(provider.requests.length, asked + 1)
  provider.respondAlways()
})

t.test('409: a stream, or an answer that is too long, cannot be given again', async t => {
  const { headers, post } = await sender()
  provider.respondNext(respondWith(chatCompletionEvents(['one'])))
  const stream = asks('hi', { stream: true })
  const first = await fetch(base + path, {
    method: 'POST',
    headers: { ...headers, 'idempotency-key': 'd', 'content-type': 'application/json' },
    body: JSON.stringify(stream),
  })
  t.match(await first.text(), /\[DONE\]/)
  t.match(await post('d', stream), {
    status: 409,
    body: { error: { message: /cannot be given again/ } },
  })
  provider.respondNext(respondJson(chatCompletion('x'.repeat(1024 * 1024))))
  t.equal((await post('e', asks('long'))).status, 200)
  t.equal((await post('e', asks('long'))).status, 409)
})

t.test('an error may be tried again with the same key', async t => {
  const { post } = await sender()
  await provider.goDown()
  t.equal((await post('f', asks('hi'))).status, 502)
  await provider.comeUp()
  provider.respondNext(respondJson(chatCompletion('Now.')))
  t.equal((await post('f', asks('hi'))).status, 200)
  t.equal((await post('f', asks('hi'))).status, 200)
})

const bodies: Record<string, object> = {
  '/v1/chat/completions': asks('hi'),
  '/v1/messages': { ...asks('hi'), model: 'anthropic/claude-sonnet-5', max_tokens: 5 },
  '/v1/models/gemini-2.5-flash:generateContent': { contents: [{ parts: [{ text: 'hi' }] }] },
}

type Forgetting = { key: string; id: string; email: string }

/** What makes an answer one that may not be given again, and whether the key still works. */
const forgettings: Record<
  string,
  [how: (given: Forgetting) => [string, string, object?], boolean]
> = {
  'clearing a vault': [() => ['DELETE', '/v1/memory'], true],
  'clearing a session': [() => ['DELETE', '/v1/memory'], true],
  'deleting a memory': [({ id }) => ['POST', '/v1/memory/delete-ids', { ids: [id] }], true],
  'erasing the account': [({ email }) => ['POST', '/v1/account/erase', { email }], false],
}

const keptAnswers = () => countStoredModelAnswers(backend)

for (const [what, [how, lives]] of Object.entries(forgettings)) {
  t.test(`${what} forgets what was answered`, async t => {
    const email = `${crypto.randomUUID()}@example.com`
    const key = await buildKey(backend, email)
    const headers = {
      'content-type': 'application/json',
      'x-memory-key': key,
      'x-provider-key': sk,
      ...(what.includes('session') && { 'x-session-id': 's' }),
    }
    const send = async (method: string, path: string, body: object | undefined, more = {}) => {
      const init = { method, headers: { ...headers, ...more }, body: JSON.stringify(body) }
      const response = await fetch(base + path, init)
      await response.text()
      return response.status
    }
    provider.respondAlways(respondJson(chatCompletion('A secret.')))
    const before = await keptAnswers()
    for (const [path, body] of Object.entries(bodies)) {
      t.equal(await send('POST', path, body, { 'idempotency-key': 'g' }), 200, path)
    }
    t.equal(await keptAnswers(), before + 3)
    const [id] = await insertMemories(backend, key, [{ text: 'A secret.' }])
    const [method, path, body] = how({ key, id: id!, email })
    t.match(String(await send(method, path, body, { prefer: 'respond-async' })), /^20[02]$/)
    await waitUntil('they are gone', async () => (await keptAnswers()) === before)
    const asked = provider.requests.length
    for (const [path, body] of lives ? Object.entries(bodies) : []) {
      t.equal(await send('POST', path, body, { 'idempotency-key': 'g' }), 200, path)
    }
    t.equal(provider.requests.length, asked + (lives ? 3 : 0), 'asked anew')
    provider.respondAlways()
  })
}

t.test('an answer that comes when its vault has been cleared is not kept', async t => {
  const { headers, post } = await sender()
  const held = Promise.withResolvers<void>()
  const asked = provider.requests.length
  provider.respondNext(async (seen, answer) => {
    await held.promise
    await respondJson(chatCompletion('A secret.'))(seen, answer)
  })
  const first = post('h', asks('hi'))
  await waitUntil('the provider is asked', () => provider.requests.length > asked)
  await client.send('DELETE', '/v1/memory', {
    headers: { 'x-memory-key': headers['x-memory-key'], prefer: 'respond-async' },
  })
  held.resolve()
  t.equal((await first).status, 200)
  provider.respondNext(respondJson(chatCompletion('Another.')))
  t.match(await post('h', asks('hi')), {
    status: 200,
    body: { choices: [{ message: { content: 'Another.' } }] },
  })
})

t.test('a call that ends after a clearing leaves the claim alone that was made since', async t => {
  const { headers, post } = await sender()
  const held = Promise.withResolvers<void>()
  const heldLonger = Promise.withResolvers<void>()
  const asked = provider.requests.length
  for (const [until, answer] of [
    [held, respondJson(chatCompletion('A secret.'))],
    [heldLonger, respondJson(chatCompletion('Another.'))],
  ] as const) {
    provider.respondNext(async (seen, to) => {
      await until.promise
      await answer(seen, to)
    })
  }
  const first = post('i', asks('hi'))
  await waitUntil('the provider is asked', () => provider.requests.length > asked)
  await client.send('DELETE', '/v1/memory', {
    headers: { 'x-memory-key': headers['x-memory-key'], prefer: 'respond-async' },
  })
  const second = post('i', asks('hi'))
  await waitUntil('it is asked anew', () => provider.requests.length > asked + 1)
  held.resolve()
  t.match(await first, { status: 200, body: { choices: [{ message: { content: 'A secret.' } }] } })
  t.equal((await post('i', asks('hi'))).status, 409, 'the second is still running')
  heldLonger.resolve()
  const another = { status: 200, body: { choices: [{ message: { content: 'Another.' } }] } }
  t.match(await second, another)
  t.match(await post('i', asks('hi')), another)
  t.equal(provider.requests.length, asked + 2)
})
