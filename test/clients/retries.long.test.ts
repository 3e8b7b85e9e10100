import t from 'tap'
import { startTestApi, startJobWorkers } from '#test/support/api.ts'
import { createTestBackend } from '#test/support/backend.ts'
import { chatCompletion, chatCompletionEvents } from '#test/support/chat-stream.ts'
import {
  respondJson,
  respondWith,
  respondError,
  neverRespond,
} from '#test/support/model-provider/answers.ts'
import {
  createAnthropicClient,
  modelNames,
  createOpenAiClient,
} from '#test/support/model-provider/clients.ts'
import { startProxyFixture, proxiedTarget } from '#test/support/model-provider/proxy-fixture.ts'
import type { Responder } from '#test/support/recording-server.ts'
import { waitUntilIdle } from '#test/support/observe-jobs.ts'
import { waitUntil } from '#test/support/wait-until.ts'
import { readDocuments } from '#test/support/insert-memories.ts'
import { ageRows } from '#test/support/alter.ts'

/** The official clients send a call again when it fails: what the user said was said once. */

const world = await startProxyFixture(t)
const { provider, backend, base } = world
await startJobWorkers(backend)

const soon = { 'retry-after-ms': '10' }
const said = 'My kettle is called Mabel.'

type Asks = (key: string, text: string, more?: { timeout?: number }) => Promise<unknown>

const asks: Record<'openai' | 'anthropic', Asks> = {
  openai: (key, text, more) =>
    createOpenAiClient(proxiedTarget(world, key), 2).chat.completions.create(
      { model: modelNames.openai, messages: [{ role: 'user', content: text }] },
      more,
    ),
  anthropic: (key, text, more) =>
    createAnthropicClient(proxiedTarget(world, key), 2).messages.create(
      { model: modelNames.anthropic, max_tokens: 9, messages: [{ role: 'user', content: text }] },
      more,
    ),
}

const storedOf = async (key: string) => {
  await waitUntilIdle(backend)
  const documents = await readDocuments(backend, key)
  return documents.flatMap(({ role, text, tomb_at: gone }) => (gone ? [] : [`${role}: ${text}`]))
}

const usersOf = async (key: string) =>
  (await storedOf(key)).filter(line => line.startsWith('user: '))

const failures: Record<string, (family: 'openai' | 'anthropic') => Responder> = {
  '429': family => respondError(family, 429, soon),
  '500': family => respondError(family, 500, soon),
  '529': family => respondError(family, 529, soon),
}

for (const family of ['openai', 'anthropic'] as const) {
  for (const [name, failing] of Object.entries(failures)) {
    t.test(`${family}: ${name}, twice, and then an answer`, async t => {
      const key = await world.newKey()
      const asked = provider.requests.length
      provider.respondNext(failing(family), failing(family))
      await asks[family](key, said)
      t.equal(provider.requests.length, asked + 3)
      await waitUntil('the answer is stored', async () => (await storedOf(key)).length > 1)
      const stored = await storedOf(key)
      t.same(
        stored.filter(line => line.startsWith('user')),
        [`user: ${said}`],
      )
      t.equal(stored.length, 2)
    })
  }

  t.test(`${family}: it fails for good, and the user sends it again by hand`, async t => {
    const key = await world.newKey()
    provider.respondNext(...Array.from({ length: 3 }, () => failures['500']!(family)))
    await t.rejects(asks[family](key, said))
    t.same(await usersOf(key), [`user: ${said}`], 'it is kept')
    await asks[family](key, said)
    await waitUntil('the answer is stored', async () => (await storedOf(key)).length > 1)
    t.same(await usersOf(key), [`user: ${said}`])
    await asks[family](key, said)
    await waitUntil('said anew', async () => (await usersOf(key)).length === 2)
    t.same(await usersOf(key), [`user: ${said}`, `user: ${said}`], 'answered, it is over')
  })
}

for (const [name, failing, more] of [
  ['the connection breaks', (_seen, answer) => answer.cut(), {}],
  ['the client’s own patience ends', neverRespond, { timeout: 10_000 }],
] as [string, Responder, object][]) {
  t.test(`openai: ${name}, twice, and then there is an answer`, async t => {
    const key = await world.newKey()
    const asked = provider.requests.length
    provider.respondNext(failing, failing)
    await asks.openai(key, said, more)
    t.equal(provider.requests.length, asked + 3)
    await waitUntil('the answer is stored', async () => (await storedOf(key)).length > 1)
    t.same(await usersOf(key), [`user: ${said}`])
  })
}

const fails = async (key: string, text = said, headers = {}) => {
  provider.respondNext(respondError('openai', 500))
  await createOpenAiClient(proxiedTarget(world, key))
    .chat.completions.create(
      { model: modelNames.openai, messages: [{ role: 'user', content: text }] },
      { headers },
    )
    .catch(() => {})
}

t.test('another turn, another session or another vault is no second try', async t => {
  const [key, other] = [await world.newKey(), await world.newKey()]
  await fails(key)
  await fails(key, `${said} Truly.`)
  await fails(key, said, { 'X-Session-ID': 's' })
  await fails(other)
  t.equal((await usersOf(key)).length, 3)
  t.equal((await usersOf(other)).length, 1)
})

t.test('cleared meanwhile, or deleted: it is stored', async t => {
  const key = await world.newKey()
  await fails(key)
  await usersOf(key)
  await fetch(`${base}/v1/memory`, { method: 'DELETE', headers: { 'x-memory-key': key } })
  t.same(await usersOf(key), [])
  await asks.openai(key, said)
  t.same(await usersOf(key), [`user: ${said}`])

  const deleting = await world.newKey()
  await fails(deleting)
  await usersOf(deleting)
  const [{ _id: id } = { _id: '' }] = await readDocuments(backend, deleting)
  await fetch(`${base}/v1/memory/delete-ids`, {
    method: 'POST',
    headers: { 'x-memory-key': deleting, 'content-type': 'application/json' },
    body: JSON.stringify({ ids: [id] }),
  })
  t.same(await usersOf(deleting), [])
  await fails(deleting)
  t.same(await usersOf(deleting), [`user: ${said}`])
})

t.test('minutes later it is said again', async t => {
  const key = await world.newKey()
  await fails(key)
  await ageRows(backend, 'unanswered_turns', '1 hour')
  await fails(key)
  t.equal((await usersOf(key)).length, 2)
})

t.test('sent again while the first is under way: one turn, with two answers', async t => {
  const key = await world.newKey()
  const held = Promise.withResolvers<void>()
  const asked = provider.requests.length
  provider.respondNext(
    async (seen, answer) => {
      await held.promise
      await respondJson(chatCompletion('One.'))(seen, answer)
    },
    respondJson(chatCompletion('Two.')),
  )
  const first = asks.openai(key, said)
  await waitUntil('the provider is asked', () => provider.requests.length > asked)
  await asks.openai(key, said)
  held.resolve()
  await first
  await waitUntil('all are stored', async () => (await storedOf(key)).length > 2)
  const stored = (await storedOf(key)).toSorted()
  t.same(stored, ['assistant: One.', 'assistant: Two.', `user: ${said}`])
})

t.test(
  'sent again in the middle of the first answer: one turn, here as in another process',
  async t => {
    const { base: other } = await startTestApi(
      t,
      await createTestBackend(t, { config: backend.config }),
    )
    for (const at of [base, other]) {
      const key = await world.newKey()
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
      const send = (to: string, stream: boolean) =>
        fetch(`${to}/v1/chat/completions`, {
          method: 'POST',
          headers: { 'x-memory-key': key, 'content-type': 'application/json' },
          body: JSON.stringify({
            model: modelNames.openai,
            stream,
            messages: [{ role: 'user', content: said }],
          }),
        })
      const first = await send(base, true)
      const second = await send(at, false)
      t.match(await second.json(), { choices: [{ message: { content: 'Two.' } }] })
      held.resolve()
      t.match(await first.text(), 'more')
      await waitUntil('all are stored', async () => (await storedOf(key)).length > 2)
      t.same((await storedOf(key)).toSorted(), [
        'assistant: One more.',
        'assistant: Two.',
        `user: ${said}`,
      ])
    }
  },
)

t.test('an error in the middle of a stream answers nothing', async t => {
  const key = await world.newKey()
  const error = 'data: {"error":{"message":"overloaded"}}\n\n'
  const half = 'data: {"choices":[{"index":0,"delta":{"content":"Half"}}]}\n\n'
  const streams = async () => {
    const body = { model: modelNames.openai, stream: true as const }
    const messages = [{ role: 'user' as const, content: said }]
    const client = createOpenAiClient(proxiedTarget(world, key))
    for await (const _ of await client.chat.completions.create({ ...body, messages }));
  }
  provider.respondNext(respondWith([half, error]))
  await t.rejects(streams())
  provider.respondNext(respondWith([half, 'data: [DONE]\n\n']))
  await streams()
  await waitUntil('the answer is stored', async () => (await storedOf(key)).length > 1)
  t.same((await storedOf(key)).toSorted(), ['assistant: Half', `user: ${said}`])
})

t.test('an answer without words is one', async t => {
  const key = await world.newKey()
  const call = { role: 'assistant', content: null, tool_calls: [{ id: 'a' }] }
  const calls = { choices: [{ index: 0, message: call, finish_reason: 'tool_calls' }] }
  provider.respondNext(respondJson(calls), respondJson(calls))
  await asks.openai(key, said)
  await asks.openai(key, said)
  t.same(await usersOf(key), [`user: ${said}`, `user: ${said}`])
})
