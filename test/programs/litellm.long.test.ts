import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { join } from 'node:path'
import OpenAI from 'openai'
import t, { type Test } from 'tap'
import { installPython } from '#test/programs/install.ts'
import { liteLlm, noteSeen } from '#test/programs/seen.ts'
import { startJobWorkers, startTestApi } from '#test/support/api.ts'
import { createTestBackend } from '#test/support/backend.ts'
import { readDocuments } from '#test/support/insert-memories.ts'
import { listen } from '#test/support/listen.ts'
import { providerKey, providerUrl } from '#test/support/model-provider.ts'
import {
  createProxyAccount,
  startProxyFixture,
} from '#test/support/model-provider/proxy-fixture.ts'
import { waitUntilIdle } from '#test/support/observe-jobs.ts'
import { waitUntil } from '#test/support/wait-until.ts'

/** LiteLLM as a program, by the lines of the guide: its users are ours, in front of the service and behind it. */

t.setTimeout(1_200_000)
const installed = await installPython([liteLlm])
const skip = 'missing' in installed && installed.missing

/** LiteLLM keeps keys in a database; this is its own interface for keys of another kind. */
const auth = `
from litellm.proxy._types import UserAPIKeyAuth

async def user_auth(request, api_key):
    if not api_key.startswith("sk-lite-"):
        raise Exception("unknown key")
    return UserAPIKeyAuth(api_key=api_key, user_id=api_key.removeprefix("sk-lite-"))
`

const config = (url: string, key: string, modelUrl: string) => `
model_list:
  - model_name: gpt-4o-mini
    litellm_params:
      model: openai/gpt-4o-mini
      api_base: ${url}/v1
      api_key: ${key}
      extra_headers: {X-Memory-User-From: x-litellm-user_api_key_user_id}
  - model_name: behind-mini
    litellm_params: {model: openai/gpt-4o-mini, api_base: ${modelUrl}, api_key: ${providerKey('openai')}}
litellm_settings:
  add_user_information_to_llm_headers: true
general_settings:
  forward_client_headers_to_llm_api: true
  custom_auth: auth.user_auth
  master_key: sk-0123456789abcdef0123456789abcdef0123456789abcdef
`

async function startLiteLlm(t: Test, folder: string, text: string): Promise<string> {
  const dir = t.testdir({ 'config.yaml': text, 'auth.py': auth })
  const reserved = createServer()
  const origin = await listen(t, reserved)
  reserved.close()
  await once(reserved, 'close')
  const args = ['--config', 'config.yaml', '--host', '127.0.0.1', '--port', new URL(origin).port]
  const child = spawn(join(folder, 'bin/litellm'), args, {
    cwd: dir,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env.PATH,
      HOME: dir,
      PYTHONPATH: dir,
      LITELLM_LOCAL_MODEL_COST_MAP: 'True',
    },
  })
  let printed = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', data => (printed += data))
  const ended = once(child, 'exit')
  t.teardown(async () => {
    child.kill('SIGKILL')
    await ended
  })
  await waitUntil('LiteLLM listens', async () => {
    if (child.exitCode !== null) throw new Error(`LiteLLM has ended: ${printed.slice(-2000)}`)
    const live = await fetch(`${origin}/health/liveliness`).catch(() => undefined)
    return live?.ok === true
  })
  return origin
}

t.test('LiteLLM in front and behind', { skip, timeout: 900_000 }, async t => {
  const world = await startProxyFixture(t)
  const { provider, backend, base, owner } = world
  await startJobWorkers(backend)
  const { key } = (await owner.post('/v1/keys', { name: 'LiteLLM', rights: 'users' })).body as {
    key: string
  }
  const modelUrl = providerUrl(provider.origin, 'openai')
  const { folder } = installed as { folder: string }
  const litellm = await startLiteLlm(t, folder, config(base, key, modelUrl))
  const client = (apiKey: string, baseURL = `${litellm}/v1`) =>
    new OpenAI({ apiKey, baseURL, maxRetries: 0 })
  const say = (content: string, model = 'gpt-4o-mini') => ({
    model,
    messages: [{ role: 'user' as const, content }],
  })

  await t.test('in front: two people, a stream, no title', async t => {
    const [ada, ben] = ['ada', 'ben'].map(user => client(`sk-lite-${user}`)) as [OpenAI, OpenAI]
    await ada.chat.completions.create(say('My spare key hangs behind the clock.'))
    const stream = await ben.chat.completions.create({
      ...say('My spare key lies under the mat.'),
      stream: true,
    })
    for await (const _ of stream);
    await waitUntilIdle(backend)
    for (const [person, own, others] of [
      [ada, 'behind the clock', 'under the mat'],
      [ben, 'under the mat', 'behind the clock'],
    ] as const) {
      await person.chat.completions.create(say('Where is my spare key?'))
      const sent = provider.requests.at(-1)!
      t.match(sent.body.toString(), own)
      t.notMatch(sent.body.toString(), others)
      t.notMatch(JSON.stringify(sent.headers), /memory-user|user_api_key/i, 'no user is told')
    }
  })

  await t.test('in front: what is refused is said in words', async t => {
    const wrong = await client('sk-lite-ada')
      .chat.completions.create({ ...say('Hello'), temperature: 9 })
      .catch((error: unknown) => error)
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
    const wrong = await person.chat.completions
      .create(say('Hello', 'no-such-model'))
      .catch((error: unknown) => error)
    t.match(wrong, { status: 400, message: /no-such-model/ })
  })
  if (t.passing()) noteSeen(liteLlm)
})
