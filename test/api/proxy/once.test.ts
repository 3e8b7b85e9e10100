import t from 'tap'
import { buildKey, clientOf, testApi } from '#test/support/api.ts'
import { testBackend } from '#test/support/backend.ts'
import { completion, streamed } from '#test/support/chat-stream.ts'
import { answersJson, exactly } from '#test/support/model-provider/answers.ts'
import { modelProvider, providerKey } from '#test/support/model-provider.ts'
import { until } from '#test/support/until.ts'
import { callerOf, remember } from '#test/support/vault.ts'

const provider = await modelProvider(t)
const backend = await testBackend(t, { env: provider.env })
const { base } = await testApi(t, backend)
const client = clientOf(base)
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
    const { account } = await callerOf(backend, key)
    await backend.postgres.query('update accounts set balance = $2 where id = $1', [
      account,
      amount,
    ])
  }
  const headers = { 'x-memory-key': key, authorization: `Bearer ${sk}` }
  const post = (idempotency: string, body: unknown, more: Record<string, string> = {}) =>
    client.post(path, body, { ...headers, 'idempotency-key': idempotency, ...more })
  return { balance, headers, post }
}

const promised = async () =>
  (await backend.postgres.query(`select from operations where kind = 'proxy'`)).rows.length

t.test('200: a call that is sent again is answered again, and made once', async t => {
  const { headers, post } = await sender()
  const text = completion('Once.').replaceAll(':', ': ')
  provider.next(answersJson(text, { headers: { 'content-type': 'application/json; x=y' } }))
  const before = [provider.seen.length, await promised()]
  t.equal((await post('a', asks('hi'))).status, 200)
  const again = await fetch(base + path, {
    method: 'POST',
    headers: { ...headers, 'idempotency-key': 'a', 'content-type': 'application/json' },
    body: JSON.stringify(asks('hi')),
  })
  t.equal(again.status, 200)
  t.equal(again.headers.get('content-type'), 'application/json; x=y')
  t.equal(await again.text(), text, 'the same bytes')
  t.same([provider.seen.length, await promised()], [before[0]! + 1, before[1]! + 1])
})

t.test('200: answered again when the balance is used up; 402 for what is new', async t => {
  const { balance, post } = await sender()
  provider.next(answersJson(completion('Paid.')))
  t.equal((await post('paid', asks('hi'))).status, 200)
  await balance(0)
  t.match(await post('paid', asks('hi')), { status: 200 })
  t.equal((await post('new', asks('hi'))).status, 402)
  await balance(null)
  provider.next(answersJson(completion('Paid now.')))
  t.equal((await post('new', asks('hi'))).status, 200, 'the refused one holds nothing up')
})

t.test('400: the same key for another call', async t => {
  const { post } = await sender()
  provider.always(answersJson(completion('ok')))
  t.equal((await post('b', asks('hi'))).status, 200)
  for (const [body, headers] of [
    [asks('ho'), {}],
    [asks('hi'), { 'x-session-id': 's' }],
    [asks('hi'), { 'x-memory-mode': 'off' }],
  ] as const) {
    t.match(await post('b', body, headers), { status: 400, body: { error: /another request/ } })
  }
  t.equal((await post('x'.repeat(257), asks('hi'))).status, 400)
  provider.always()
})

t.test('409: while the first runs; twenty at once make one call', async t => {
  const { post } = await sender()
  let release = (): void => {}
  const held = new Promise<void>(resolve => (release = resolve))
  const asked = provider.seen.length
  provider.always(async (seen, answer) => {
    await held
    await answersJson(completion('ok'))(seen, answer)
  })
  const statuses: number[] = []
  const answers = Array.from({ length: 20 }, async () =>
    statuses.push((await post('c', asks('hi'))).status),
  )
  await until('all others are told to wait', () => statuses.length === 19)
  t.same([...new Set(statuses)], [409])
  release()
  await Promise.all(answers)
  t.equal(statuses.at(-1), 200)
  t.equal(provider.seen.length, asked + 1)
  t.equal((await post('c', asks('hi'))).status, 200)
  t.equal(provider.seen.length, asked + 1)
  provider.always()
})

t.test('409: a stream, or an answer that is too long, cannot be given again', async t => {
  const { headers, post } = await sender()
  provider.next(exactly(streamed(['one'])))
  const stream = asks('hi', { stream: true })
  const first = await fetch(base + path, {
    method: 'POST',
    headers: { ...headers, 'idempotency-key': 'd', 'content-type': 'application/json' },
    body: JSON.stringify(stream),
  })
  t.match(await first.text(), /\[DONE\]/)
  t.match(await post('d', stream), { status: 409, body: { error: /cannot be given again/ } })
  provider.next(answersJson(completion('x'.repeat(1024 * 1024))))
  t.equal((await post('e', asks('long'))).status, 200)
  t.equal((await post('e', asks('long'))).status, 409)
})

t.test('an error may be tried again with the same key', async t => {
  const { post } = await sender()
  await provider.down()
  t.equal((await post('f', asks('hi'))).status, 502)
  await provider.up()
  provider.next(answersJson(completion('Now.')))
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

const keptAnswers = async (): Promise<number> => {
  const { rows } = await backend.postgres.query<{ n: number }>(
    `select count(*)::int as n from idempotency
     where answer is not null and route not like '%/memory/%' and route not like '%/account/%'`,
  )
  return rows[0]!.n
}

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
    provider.always(answersJson(completion('A secret.')))
    const before = await keptAnswers()
    for (const [path, body] of Object.entries(bodies)) {
      t.equal(await send('POST', path, body, { 'idempotency-key': 'g' }), 200, path)
    }
    t.equal(await keptAnswers(), before + 3)
    const [id] = await remember(backend, key, [{ text: 'A secret.' }])
    const [method, path, body] = how({ key, id: id!, email })
    t.match(String(await send(method, path, body, { prefer: 'respond-async' })), /^20[02]$/)
    await until('they are gone', async () => (await keptAnswers()) === before)
    const asked = provider.seen.length
    for (const [path, body] of lives ? Object.entries(bodies) : []) {
      t.equal(await send('POST', path, body, { 'idempotency-key': 'g' }), 200, path)
    }
    t.equal(provider.seen.length, asked + (lives ? 3 : 0), 'asked anew')
    provider.always()
  })
}

t.test('an answer that comes when its vault has been cleared is not kept', async t => {
  const { headers, post } = await sender()
  const held = Promise.withResolvers<void>()
  const asked = provider.seen.length
  provider.next(async (seen, answer) => {
    await held.promise
    await answersJson(completion('A secret.'))(seen, answer)
  })
  const first = post('h', asks('hi'))
  await until('the provider is asked', () => provider.seen.length > asked)
  await client.send('DELETE', '/v1/memory', {
    headers: { 'x-memory-key': headers['x-memory-key'], prefer: 'respond-async' },
  })
  held.resolve()
  t.equal((await first).status, 200)
  provider.next(answersJson(completion('Another.')))
  t.match(await post('h', asks('hi')), {
    status: 200,
    body: { choices: [{ message: { content: 'Another.' } }] },
  })
})

t.test('a call that ends after a clearing leaves the claim alone that was made since', async t => {
  const { headers, post } = await sender()
  const held = Promise.withResolvers<void>()
  const heldLonger = Promise.withResolvers<void>()
  const asked = provider.seen.length
  for (const [until, answer] of [
    [held, answersJson(completion('A secret.'))],
    [heldLonger, answersJson(completion('Another.'))],
  ] as const) {
    provider.next(async (seen, to) => {
      await until.promise
      await answer(seen, to)
    })
  }
  const first = post('i', asks('hi'))
  await until('the provider is asked', () => provider.seen.length > asked)
  await client.send('DELETE', '/v1/memory', {
    headers: { 'x-memory-key': headers['x-memory-key'], prefer: 'respond-async' },
  })
  const second = post('i', asks('hi'))
  await until('it is asked anew', () => provider.seen.length > asked + 1)
  held.resolve()
  t.match(await first, { status: 200, body: { choices: [{ message: { content: 'A secret.' } }] } })
  t.equal((await post('i', asks('hi'))).status, 409, 'the second is still running')
  heldLonger.resolve()
  const another = { status: 200, body: { choices: [{ message: { content: 'Another.' } }] } }
  t.match(await second, another)
  t.match(await post('i', asks('hi')), another)
  t.equal(provider.seen.length, asked + 2)
})
