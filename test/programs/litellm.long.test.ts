import { join } from 'node:path'
import OpenAI from 'openai'
import t from 'tap'
import {
  keepApart,
  snippetsOf,
  startChatWorld,
  startServer,
  type Person,
} from '#test/programs/chat-world.ts'
import { installPython } from '#test/programs/install.ts'
import { liteLlm, noteSeen } from '#test/programs/seen.ts'
import { startJobWorkers, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { readDocuments } from '#test/support/start/insert-memories.ts'
import { providerKey, providerUrl } from '#test/support/doubles/model-provider.ts'
import { createProxyAccount } from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { waitUntilIdle } from '#test/support/checks/observe-jobs.ts'

/** LiteLLM as a program, with the callback of the guide: its users are ours, in front of the service and behind it. */

t.setTimeout(1_200_000)
const installed = await installPython([liteLlm])
const skip = 'missing' in installed && installed.missing

/** LiteLLM keeps keys in a database; this is its own interface for keys of another kind. */
const auth = `
from litellm.proxy._types import UserAPIKeyAuth

async def user_auth(request, api_key):
    if not api_key.startswith("sk-lite-"):
        raise Exception("unknown key")
    return UserAPIKeyAuth(api_key=api_key, user_id=api_key.removeprefix("sk-lite-") or None)
`

const config = (url: string, key: string, modelUrl: string) => `
model_list:
  - model_name: gpt-4o-mini
    litellm_params: {model: openai/gpt-4o-mini, api_base: ${url}/v1, api_key: ${key}}
  - model_name: behind-mini
    litellm_params: {model: openai/gpt-4o-mini, api_base: ${modelUrl}, api_key: ${providerKey('openai')}}
litellm_settings:
  callbacks: memory_user.memory_user
general_settings:
  custom_auth: auth.user_auth
  master_key: sk-0123456789abcdef0123456789abcdef0123456789abcdef
`

t.test('LiteLLM in front and behind', { skip, timeout: 900_000 }, async t => {
  const world = await startChatWorld(t)
  const { provider, base, key } = world
  const { folder } = installed as { folder: string }
  const cwd = t.testdir({
    'config.yaml': config(base, key, providerUrl(provider.origin, 'openai')),
    'auth.py': auth,
    'memory_user.py': snippetsOf('LiteLLM and its keys')[0]!,
  })
  const litellm = await startServer(t, join(folder, 'bin/litellm'), {
    args: port => ['--config', 'config.yaml', '--host', '127.0.0.1', '--port', port],
    live: '/health/liveliness',
    cwd,
    env: { PYTHONPATH: cwd, LITELLM_LOCAL_MODEL_COST_MAP: 'True' },
  })
  const client = (apiKey: string, baseURL = `${litellm}/v1`) =>
    new OpenAI({ apiKey, baseURL, maxRetries: 0 })
  const say = (content: string, model = 'gpt-4o-mini') => ({
    model,
    messages: [{ role: 'user' as const, content }],
  })
  const failed = (error: unknown) => error

  await t.test('in front: two people, one by a stream', async t => {
    const ada: Person = {
      id: 'ada',
      say: async words => {
        const { choices } = await client('sk-lite-ada').chat.completions.create(say(words))
        return choices[0]!.message.content!
      },
    }
    const ben: Person = {
      id: 'ben',
      say: async words => {
        const body = { ...say(words), stream: true } as const
        const stream = await client('sk-lite-ben').chat.completions.create(body)
        let answer = ''
        for await (const { choices } of stream) answer += choices[0]?.delta.content ?? ''
        return answer
      },
    }
    await keepApart(t, world, ada, ben)
  })

  await t.test(
    'in front: a client names no other person, and a key without one has no memory',
    async t => {
      const mallory = client('sk-lite-mallory')
      const named = {
        ...say('Where is my spare key?'),
        user: 'ada',
        extra_headers: { 'x-memory-user': 'ada', 'X-Memory-User-From': 'x-ada' },
      }
      const headers = { 'X-Memory-User': 'ada', 'x-litellm-user_api_key_user_id': 'ada' }
      const before = provider.requests.length
      await mallory.chat.completions.create(named, { headers })
      t.equal(provider.requests.length, before + 1)
      t.notMatch(provider.requests.at(-1)!.body.toString(), 'behind the clock')
      const keyless = await client('sk-lite-').chat.completions.create(say('Hello')).catch(failed)
      t.match(keyless, { status: 403, message: /This key has no user/ })
      t.equal(provider.requests.length, before + 1)
    },
  )

  await t.test('in front: what is refused is said in words', async t => {
    const wrong = await client('sk-lite-ada')
      .chat.completions.create({ ...say('Hello'), temperature: 9 })
      .catch(failed)
    t.match(wrong, { status: 400, message: /temperature/ })
  })

  await t.test('behind: the service asks LiteLLM as its provider', async t => {
    const env = { ...provider.env, OPENAI_BASE_URL: `${litellm}/v1` }
    const second = await createTestBackend(t, { env })
    await startJobWorkers(second)
    const api = await startTestApi(t, second)
    const account = await createProxyAccount(second, api.base)
    await account.owner.send('PUT', '/v1/account/provider-keys/openai', {
      body: { key: 'sk-lite-service' },
    })
    const memoryKey = await account.newKey()
    const person = client(memoryKey, `${api.base}/v1`)
    const { choices } = await person.chat.completions.create(say('My kite is long.', 'behind-mini'))
    t.match(choices[0]?.message.content, 'Noted')
    await waitUntilIdle(second)
    await person.chat.completions.create(say('How long is my kite?', 'behind-mini'))
    t.match(provider.requests.at(-1)!.body.toString(), /memory_context[^]*My kite is long/)
    const texts = (await readDocuments(second, memoryKey)).map(({ text }) => text)
    t.ok(texts.includes('My kite is long.'))
    const wrong = await person.chat.completions.create(say('Hello', 'no-such-model')).catch(failed)
    t.match(wrong, { status: 400, message: /no-such-model/ })
  })
  if (t.passing()) noteSeen(liteLlm)
})
