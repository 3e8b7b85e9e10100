import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { keepApart, startChatWorld, type Person } from '#test/programs/chat-world.ts'
import { installOpenWebui, startOpenWebui, type Account } from '#test/programs/open-webui.ts'
import { noteSeen, openWebui } from '#test/programs/seen.ts'
import { createTestClient } from '#test/support/start/api.ts'
import { providerKey, providerUrl } from '#test/support/doubles/model-provider.ts'
import { defaultReply } from '#test/support/doubles/model-provider/fixtures.ts'
import { waitUntilIdle } from '#test/support/checks/observe-jobs.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

/**
 * The filter function in Open WebUI as a program, whose models are called past the service: an administrator adds the
 * file, and two people chat.
 */

t.setTimeout(1_200_000)
const content = readFileSync(
  fileURLToPath(new URL('../../api/client/open-webui/memory_vault.py', import.meta.url)),
  'utf8',
)
const installed = await installOpenWebui()
const skip = 'missing' in installed && installed.missing

t.test('the filter of Open WebUI', { skip, timeout: 900_000 }, async t => {
  const world = await startChatWorld(t)
  const { provider, backend, base, key, newKey } = world
  const { folder: environment } = installed as { folder: string }
  const { request, ada, ben, ask } = await startOpenWebui(t, environment, {
    folder: t.testdir({}),
    model: 'gpt-4o',
    env: {
      OPENAI_API_BASE_URLS: providerUrl(provider.directOrigin, 'openai'),
      OPENAI_API_KEYS: providerKey('openai'),
    },
  })
  const id = 'memory_vault'
  const meta = { description: 'x', manifest: {} }
  const path = `/api/v1/functions/id/${id}`
  const setValves = (valves: object) =>
    request(`${path}/valves/update`, ada.token, { url: base, key, ...valves })

  await t.test('an administrator adds it, and sets its valves', async t => {
    const form = { id, name: 'Memory Vault', content, meta }
    const made = await request('/api/v1/functions/create', ada.token, form)
    t.match(made, { type: 'filter', meta: { manifest: { title: 'Memory Vault', license: 'MIT' } } })
    await request(`${path}/toggle`, ada.token, {})
    t.match(await request(`${path}/toggle/global`, ada.token, {}), { is_global: true })
    t.match(await setValves({}), { url: base, key })
  })

  const sentFor = async (account: Account, words: string, more: object = {}) => {
    const before = provider.requests.length
    await ask(account, words, more)
    const asked = provider.requests.slice(before).filter(({ body }) => body.includes(words))
    return asked.map(({ body }) => body.toString()).join('\n')
  }
  const storedOf = async (memoryKey: string, user?: string): Promise<string[]> => {
    await waitUntilIdle(backend)
    const { body } = await createTestClient(base, memoryKey).get(
      '/v1/memory/list',
      user === undefined ? {} : { 'x-memory-user': user },
    )
    return (body as { items: { text: string }[] }).items.map(({ text }) => text)
  }

  const asPerson = (account: Account): Person => ({
    id: account.id,
    say: async words => {
      const before = (await storedOf(key, account.id)).length
      const { content: said } = await ask(account, words)
      // The filter stores a turn once the chat has its answer.
      await waitUntil('the turn is stored', async () => {
        return (await storedOf(key, account.id)).length === before + 2
      })
      return said
    },
  })

  await t.test('two people', async t => {
    await keepApart(t, world, asPerson(ada), asPerson(ben))
  })

  await t.test('a person with a key of their own, and one who wants none', async t => {
    const own = await newKey()
    const set = (valves: object) => request(`${path}/valves/user/update`, ben.token, valves)
    await set({ key: own })
    await ask(ben, 'My canoe is yellow.')
    await waitUntil('the turn is in the own vault', async () =>
      (await storedOf(own)).includes('My canoe is yellow.'),
    )
    t.notOk((await storedOf(key, ben.id)).includes('My canoe is yellow.'))
    await set({ enabled: false })
    t.notMatch(await sentFor(ben, 'Where is my spare key?'), 'memory_context')
    t.equal((await storedOf(key, ben.id)).length, 4)
    await set({ enabled: true, key: '' })
  })

  await t.test('a temporary chat is neither asked with nor stored', async t => {
    const own = crypto.randomUUID()
    const secret = 'Where is my spare key, secretly?'
    await request('/api/chat/completions', ada.token, {
      model: 'gpt-4o',
      stream: true,
      chat_id: `temporary:${own}`,
      id: own,
      session_id: own,
      messages: [{ role: 'user', content: secret }],
    })
    const asked = () => provider.requests.filter(({ body }) => body.includes(secret))
    await waitUntil('the model is asked', () => asked().length > 0)
    await asPerson(ada).say('My kite is blue.')
    t.notMatch(
      asked()
        .map(({ body }) => body.toString())
        .join('\n'),
      'memory_context',
    )
    t.notOk((await storedOf(key, ada.id)).includes(secret))
  })

  await t.test('a key that is refused, and a service that is away: the model answers', async t => {
    for (const valves of [{ key: 'mk_wrong' }, { url: 'http://127.0.0.1:9' }]) {
      await setValves(valves)
      const { content: said, statusHistory } = (await ask(ada, 'Good evening.')) as {
        content: string
        statusHistory?: { description: string }[]
      }
      t.equal(said, defaultReply)
      t.match(JSON.stringify(statusHistory), /Memory Vault: nothing was recalled: \w+/)
    }
    await setValves({})
  })
  if (t.passing()) noteSeen(openWebui)
})
