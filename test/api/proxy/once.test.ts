import t from 'tap'
import { buildKey, clientOf, testApi } from '#test/support/api.ts'
import { testBackend } from '#test/support/backend.ts'
import { completion, streamed } from '#test/support/chat-stream.ts'
import { answersJson, exactly } from '#test/support/model-provider/answers.ts'
import { modelProvider, providerKey } from '#test/support/model-provider.ts'
import { until } from '#test/support/until.ts'

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
  const headers = { 'x-memory-key': key, authorization: `Bearer ${sk}` }
  const post = (idempotency: string, body: unknown, more: Record<string, string> = {}) =>
    client.post(path, body, { ...headers, 'idempotency-key': idempotency, ...more })
  return { headers, post }
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

t.test('clearing a vault forgets what was answered', async t => {
  const { headers, post } = await sender()
  provider.always(answersJson(completion('A secret.')))
  await post('g', asks('hi'))
  await client.send('DELETE', '/v1/memory', {
    headers: { 'x-memory-key': headers['x-memory-key'], prefer: 'respond-async' },
  })
  const asked = provider.seen.length
  t.equal((await post('g', asks('hi'))).status, 200)
  t.equal(provider.seen.length, asked + 1)
  provider.always()
})
