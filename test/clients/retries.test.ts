import t from 'tap'
import { testApi, workOn } from '#test/support/api.ts'
import { testBackend } from '#test/support/backend.ts'
import { settled } from '#test/support/journal.ts'
import { completion, streamed } from '#test/support/chat-stream.ts'
import { answersJson, exactly, refuses, silent } from '#test/support/model-provider/answers.ts'
import { anthropicOf, models, openaiOf } from '#test/support/model-provider/clients.ts'
import { proxyWorld, through } from '#test/support/model-provider/world.ts'
import type { Answering } from '#test/support/recorder.ts'
import { until } from '#test/support/until.ts'
import { documentsOf } from '#test/support/vault.ts'

/** The official clients send a call again when it fails: what the user said was said once. */

const world = await proxyWorld(t)
const { provider, backend, base } = world
await workOn(backend)

const soon = { 'retry-after-ms': '10' }
const said = 'My kettle is called Mabel.'

type Asks = (key: string, text: string, more?: { timeout?: number }) => Promise<unknown>

const asks: Record<'openai' | 'anthropic', Asks> = {
  openai: (key, text, more) =>
    openaiOf(through(world, key), 2).chat.completions.create(
      { model: models.openai, messages: [{ role: 'user', content: text }] },
      more,
    ),
  anthropic: (key, text, more) =>
    anthropicOf(through(world, key), 2).messages.create(
      { model: models.anthropic, max_tokens: 9, messages: [{ role: 'user', content: text }] },
      more,
    ),
}

const storedOf = async (key: string) => {
  await settled(backend, 20_000)
  const documents = await documentsOf(backend, key)
  return documents.flatMap(({ role, text, tomb_at: gone }) => (gone ? [] : [`${role}: ${text}`]))
}

const usersOf = async (key: string) =>
  (await storedOf(key)).filter(line => line.startsWith('user: '))

const failures: Record<string, (family: 'openai' | 'anthropic') => Answering> = {
  '429': family => refuses(family, 429, soon),
  '500': family => refuses(family, 500, soon),
  '529': family => refuses(family, 529, soon),
}

for (const family of ['openai', 'anthropic'] as const) {
  for (const [name, failing] of Object.entries(failures)) {
    t.test(`${family}: ${name}, twice, and then an answer`, async t => {
      const key = await world.newKey()
      const asked = provider.seen.length
      provider.next(failing(family), failing(family))
      await asks[family](key, said)
      t.equal(provider.seen.length, asked + 3)
      await until('the answer is stored', async () => (await storedOf(key)).length > 1)
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
    provider.next(...Array.from({ length: 3 }, () => failures['500']!(family)))
    await t.rejects(asks[family](key, said))
    t.same(await usersOf(key), [`user: ${said}`], 'it is kept')
    await asks[family](key, said)
    await until('the answer is stored', async () => (await storedOf(key)).length > 1)
    t.same(await usersOf(key), [`user: ${said}`])
    await asks[family](key, said)
    await until('said anew', async () => (await usersOf(key)).length === 2)
    t.same(await usersOf(key), [`user: ${said}`, `user: ${said}`], 'answered, it is over')
  })
}

for (const [name, failing, more] of [
  ['the connection breaks', (_seen, answer) => answer.cut(), {}],
  ['the client’s own patience ends', silent, { timeout: 800 }],
] as [string, Answering, object][]) {
  t.test(`openai: ${name}, twice, and then there is an answer`, async t => {
    const key = await world.newKey()
    const asked = provider.seen.length
    provider.next(failing, failing)
    await asks.openai(key, said, more)
    t.equal(provider.seen.length, asked + 3)
    await until('the answer is stored', async () => (await storedOf(key)).length > 1)
    t.same(await usersOf(key), [`user: ${said}`])
  })
}

const fails = async (key: string, text = said, headers = {}) => {
  provider.next(refuses('openai', 500))
  await openaiOf(through(world, key))
    .chat.completions.create(
      { model: models.openai, messages: [{ role: 'user', content: text }] },
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
  const [{ _id: id } = { _id: '' }] = await documentsOf(backend, deleting)
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
  await backend.postgres.query(
    `update unanswered_turns set ended_at = ended_at - interval '1 hour'`,
  )
  await fails(key)
  t.equal((await usersOf(key)).length, 2)
})

t.test('sent again while the first is under way: one turn, with two answers', async t => {
  const key = await world.newKey()
  const held = Promise.withResolvers<void>()
  const asked = provider.seen.length
  provider.next(
    async (seen, answer) => {
      await held.promise
      await answersJson(completion('One.'))(seen, answer)
    },
    answersJson(completion('Two.')),
  )
  const first = asks.openai(key, said)
  await until('the provider is asked', () => provider.seen.length > asked)
  await asks.openai(key, said)
  held.resolve()
  await first
  await until('all are stored', async () => (await storedOf(key)).length > 2)
  const stored = (await storedOf(key)).toSorted()
  t.same(stored, ['assistant: One.', 'assistant: Two.', `user: ${said}`])
})

t.test(
  'sent again in the middle of the first answer: one turn, here as in another process',
  async t => {
    const { base: other } = await testApi(t, await testBackend(t, { config: backend.config }))
    for (const at of [base, other]) {
      const key = await world.newKey()
      const held = Promise.withResolvers<void>()
      const [half, ...rest] = streamed(['One', ' more.'])
      provider.next(
        async (_seen, answer) => {
          answer.head(200, { 'content-type': 'text/event-stream' })
          await answer.write(half!)
          await held.promise
          for (const chunk of rest) await answer.write(chunk)
          answer.end()
        },
        answersJson(completion('Two.')),
      )
      const send = (to: string, stream: boolean) =>
        fetch(`${to}/v1/chat/completions`, {
          method: 'POST',
          headers: { 'x-memory-key': key, 'content-type': 'application/json' },
          body: JSON.stringify({
            model: models.openai,
            stream,
            messages: [{ role: 'user', content: said }],
          }),
        })
      const first = await send(base, true)
      const second = await send(at, false)
      t.match(await second.json(), { choices: [{ message: { content: 'Two.' } }] })
      held.resolve()
      t.match(await first.text(), 'more')
      await until('all are stored', async () => (await storedOf(key)).length > 2)
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
    const body = { model: models.openai, stream: true as const }
    const messages = [{ role: 'user' as const, content: said }]
    const client = openaiOf(through(world, key))
    for await (const _ of await client.chat.completions.create({ ...body, messages }));
  }
  provider.next(exactly([half, error]))
  await t.rejects(streams())
  provider.next(exactly([half, 'data: [DONE]\n\n']))
  await streams()
  await until('the answer is stored', async () => (await storedOf(key)).length > 1)
  t.same((await storedOf(key)).toSorted(), ['assistant: Half', `user: ${said}`])
})

t.test('an answer without words is one', async t => {
  const key = await world.newKey()
  const call = { role: 'assistant', content: null, tool_calls: [{ id: 'a' }] }
  const calls = { choices: [{ index: 0, message: call, finish_reason: 'tool_calls' }] }
  provider.next(answersJson(calls), answersJson(calls))
  await asks.openai(key, said)
  await asks.openai(key, said)
  t.same(await usersOf(key), [`user: ${said}`, `user: ${said}`])
})
