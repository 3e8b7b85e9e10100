import t from 'tap'
import { createTestClient, startTestApi, startJobWorkers } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { chatCompletion, chatCompletionEvents } from '#test/support/doubles/chat-stream.ts'
import {
  respondJson,
  respondWith,
  respondError,
  neverRespond,
} from '#test/support/doubles/model-provider/answers.ts'
import { defaultReply } from '#test/support/doubles/model-provider/fixtures.ts'
import { startProxyFixture } from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { waitUntilIdle } from '#test/support/checks/observe-jobs.ts'
import { callModel, proxyDialects } from '#test/support/samples/proxy-dialects.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { readDocuments } from '#test/support/start/insert-memories.ts'
import { ageRows } from '#test/support/checks/alter.ts'

/** Clients send a call again when it fails: what the user said was said once. */

const { provider, backend, base, newKey } = await startProxyFixture(t)
await startJobWorkers(backend)

const said = 'My kettle is called Mabel.'
const openai = proxyDialects[0]!
type Asking = Parameters<typeof callModel>[4] & { at?: string; text?: string }

const ask = async (key: string, { at = base, text = said, ...options }: Asking = {}) => {
  const response = await callModel(at, key, openai, text, options)
  return { status: response.status, text: await response.text() }
}

const fails = (key: string, asking: Asking = {}) => {
  provider.respondNext(respondError('openai', 500))
  return ask(key, asking)
}

const storedOf = async (key: string) => {
  await waitUntilIdle(backend)
  const documents = await readDocuments(backend, key)
  const kept = documents.filter(({ tomb_at: gone }) => !gone)
  return kept.map(({ role, text }) => `${role}: ${text}`).toSorted()
}
const once = [`user: ${said}`]
const answered = (...replies: string[]) => [...replies.map(text => `assistant: ${text}`), ...once]

for (const dialect of proxyDialects) {
  const { format, provider: family } = dialect

  t.test(`${format}: it fails twice, however it does, and then there is an answer`, async t => {
    const failings = [
      ...[429, 500, 529].map(status => respondError(family, status)),
      (_seen: unknown, answer: { cut(): void }) => answer.cut(),
    ]
    for (const failing of failings) {
      const key = await newKey()
      provider.respondNext(failing, failing)
      for (const isAnswered of [false, false, true]) {
        const response = await callModel(base, key, dialect, said)
        await response.text()
        t.equal(response.ok, isAnswered)
        if (!isAnswered) t.same(await storedOf(key), once, 'it is kept')
      }
      t.same(await storedOf(key), answered(defaultReply))
    }
  })

  t.test(`${format}: the patience of the client ends twice`, async t => {
    const key = await newKey()
    for (let tries = 0; tries < 2; tries++) {
      const asked = provider.requests.length
      provider.respondNext(neverRespond)
      const patience = new AbortController()
      const call = callModel(base, key, dialect, said, { signal: patience.signal })
      await waitUntil('the provider is asked', () => provider.requests.length > asked)
      patience.abort()
      await t.rejects(call)
      await provider.requests.at(-1)!.outcome
      // A call that comes before the service has noted that the last one failed is a call of its own.
      await waitUntil('it is kept', async () => (await storedOf(key)).length > 0)
    }
    await (await callModel(base, key, dialect, said)).text()
    t.same(await storedOf(key), answered(defaultReply))
  })
}

t.test('once it is answered it is said anew', async t => {
  const key = await newKey()
  for (let count = 0; count < 2; count++) await ask(key)
  t.same(await storedOf(key), [...answered(defaultReply, defaultReply), ...once])
})

t.test('another turn, another session or another vault is no second try', async t => {
  const [key, other] = [await newKey(), await newKey()]
  await fails(key)
  await fails(key, { text: `${said} Truly.` })
  await fails(key, { headers: { 'x-session-id': 's' } })
  await fails(other)
  t.same(await storedOf(key), [...once, `user: ${said} Truly.`, ...once].toSorted())
  t.same(await storedOf(other), once)
})

t.test('cleared meanwhile, or deleted: it is stored', async t => {
  const key = await newKey()
  const client = createTestClient(base, key)
  await fails(key)
  t.same(await storedOf(key), once)
  await client.send('DELETE', '/v1/memory')
  t.same(await storedOf(key), [])
  await fails(key)
  t.same(await storedOf(key), once)
  const [{ _id: id } = { _id: '' }] = await readDocuments(backend, key)
  await client.post('/v1/memory/delete-ids', { ids: [id] })
  t.same(await storedOf(key), [])
  await fails(key)
  t.same(await storedOf(key), once)
})

t.test('minutes later it is said again', async t => {
  const key = await newKey()
  await fails(key)
  await storedOf(key)
  await ageRows(backend, 'unanswered_turns', '1 hour')
  await fails(key)
  t.same(await storedOf(key), [...once, ...once])
})

t.test('sent again while the first is under way: one turn, with two answers', async t => {
  const key = await newKey()
  const held = Promise.withResolvers<void>()
  const asked = provider.requests.length
  provider.respondNext(
    async (seen, answer) => {
      await held.promise
      await respondJson(chatCompletion('One.'))(seen, answer)
    },
    respondJson(chatCompletion('Two.')),
  )
  const first = ask(key)
  await waitUntil('the provider is asked', () => provider.requests.length > asked)
  await ask(key)
  held.resolve()
  await first
  t.same(await storedOf(key), answered('One.', 'Two.'))
})

t.test('sent again in the middle of the answer: one turn, in another process too', async t => {
  const second = await createTestBackend(t, { config: backend.config })
  const { base: other } = await startTestApi(t, second)
  for (const at of [base, other]) {
    const key = await newKey()
    const held = Promise.withResolvers<void>()
    const [half, ...rest] = chatCompletionEvents(['One', ' more.'])
    provider.respondNext(
      async (_seen, answer) => {
        answer.head(200, { 'content-type': 'text/event-stream' })
        await answer.write(half!)
        await held.promise
        for (const chunk of rest) await answer.write(chunk)
        answer.end()
      },
      respondJson(chatCompletion('Two.')),
    )
    const first = await callModel(base, key, openai, said, { stream: true })
    t.match((await ask(key, { at })).text, 'Two.')
    held.resolve()
    t.match(await first.text(), 'more')
    t.same(await storedOf(key), answered('One more.', 'Two.'))
  }
})

t.test('an error in the middle of a stream answers nothing', async t => {
  const key = await newKey()
  const [half, ...end] = chatCompletionEvents(['Half'])
  provider.respondNext(respondWith([half!, 'data: {"error":{"message":"overloaded"}}\n\n']))
  await ask(key, { stream: true })
  provider.respondNext(respondWith([half!, ...end]))
  await ask(key, { stream: true })
  t.same(await storedOf(key), answered('Half'))
})

t.test('an answer without words is one', async t => {
  const key = await newKey()
  const calls = respondJson(chatCompletion(null, { tool_calls: [{ id: 'a' }] }))
  provider.respondNext(calls, calls)
  for (let count = 0; count < 2; count++) await ask(key)
  t.same(await storedOf(key), [...once, ...once])
})
