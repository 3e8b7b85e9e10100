import t from 'tap'
import { buildKey, createTestClient } from '#test/support/start/api.ts'
import { respondJson } from '#test/support/doubles/model-provider/answers.ts'
import { startModelProvider, providerKey } from '#test/support/doubles/model-provider.ts'
import { findHeader } from '#test/support/doubles/recording-server.ts'
import { startService } from '#test/support/start/start-service.ts'

const provider = await startModelProvider(t)
const { backend, base } = await startService(t, { env: provider.env, jobs: [] })
const client = createTestClient(base)

const sk = providerKey('google')
const last = () => provider.requests.at(-1)!
const asks = (text: string) => ({ contents: [{ role: 'user', parts: [{ text }] }] })
const piece = (text: string, finishReason?: string) => ({
  candidates: [
    { content: { role: 'model', parts: [{ text }] }, ...(finishReason && { finishReason }) },
  ],
  usageMetadata: { promptTokenCount: 4, candidatesTokenCount: 2 },
})

t.test('200: a model named with its provider, whether or not its slash is escaped', async t => {
  const headers = { 'x-memory-key': await buildKey(backend), 'x-goog-api-key': sk }
  for (const version of ['v1', 'v1beta']) {
    provider.respondNext(respondJson(piece('Red.', 'STOP')))
    const url = `${base}/${version}/models/google/gemini-2.5-flash:generateContent`
    const body = JSON.stringify(asks('Which colour is the bike?'))
    const answer = await fetch(url, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body,
    })
    t.same(await answer.json(), piece('Red.', 'STOP'))
    t.equal(last().url, `/google/${version}/models/gemini-2.5-flash:generateContent`)
  }
})

t.test('200: a key in the query opens nothing and goes nowhere, but a provider’s pays', async t => {
  const key = await buildKey(backend)
  const url = '/v1beta/models/gemini-2.5-flash:generateContent'
  t.equal((await client.post(`${url}?key=${key}`, asks('hi'))).status, 401)
  provider.respondAlways(respondJson(piece('hi')))
  const paid = await client.post(`${url}?key=${sk}&alt=json`, asks('hi'), { 'x-memory-key': key })
  t.equal(paid.status, 200)
  t.equal(last().url, `/google${url}?alt=json`)
  t.equal(findHeader(last().headers, 'x-goog-api-key'), sk)
  const both = { 'x-memory-key': key, 'x-goog-api-key': sk }
  t.equal((await client.post(`${url}?key=${key}`, asks('hi'), both)).status, 200)
  t.equal(last().url, `/google${url}`)
  provider.respondAlways()
})

t.test('404: a model that could not be one; 400: a model of others', async t => {
  const key = await buildKey(backend)
  const headers = { 'x-memory-key': key, 'x-goog-api-key': sk }
  const asked = provider.requests.length
  const call = (model: string) =>
    client.post(`/v1/models/${model}:generateContent`, asks('hi'), headers)
  t.equal((await call('..%2F..%2Fsecrets')).status, 404)
  t.equal((await call('a%3Fb')).status, 404)
  t.match(await call('google%2F..'), { status: 404 })
  for (const name of [`mk_${'q'.repeat(32)}`, `google%2Fmk_${'q'.repeat(32)}`, `x-${key}`]) {
    const answer = await call(name)
    t.match(
      answer,
      { status: 404, body: { error: { message: /No such model/ } } },
      'a Memory Key is no model',
    )
    t.notMatch(JSON.stringify(answer.body), name)
  }
  t.match(await call('gpt-5'), {
    status: 400,
    body: { error: { message: /openai does not speak/ } },
  })
  t.match(await client.post('/v1/models/gemini-x:countWords', {}, headers), { status: 405 })
  t.equal(provider.requests.length, asked)
})
