import t from 'tap'
import { createTestClient, startJobWorkers } from '#test/support/start/api.ts'
import { connectMcp } from '#test/support/start/mcp.ts'
import { startProxyFixture } from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { waitUntilIdle } from '#test/support/checks/observe-jobs.ts'

/** Programs that several people use, with what each sends of its user by its source: no user meets the words of another. */

const { provider, backend, base, owner } = await startProxyFixture(t)
await startJobWorkers(backend)
const { key } = (await owner.post('/v1/keys', { name: 'Chat', rights: 'users' })).body as {
  key: string
}

type Person = { id: string; email: string; name: string }
const people = (program: string): [Person, Person] => [
  { id: `id-of-ada-${program}`, email: `ada-${program}@example.com`, name: 'Ada%20Byron' },
  { id: `id-of-bob-${program}`, email: `bob-${program}@example.com`, name: 'Bob' },
]

/** Headers of a chat, and fields of its body beside model, messages and stream. */
type Sent = { headers: Record<string, string>; more?: object }

const chatId = 'b9a1f0c2-5a52-4a3a-9a0e-8c1f6a3d9e77'

const programs: Record<string, (person: Person) => Sent> = {
  // open_webui/utils/headers.py and routers/openai.py, with FORWARD_USER_INFO_HEADER_USER_ID=X-Memory-User.
  'open-webui': ({ id, email, name }) => ({
    headers: {
      'X-OpenWebUI-User-Name': name,
      'X-Memory-User': id,
      'X-OpenWebUI-User-Email': email,
      'X-OpenWebUI-User-Role': 'user',
      'X-OpenWebUI-Chat-Id': chatId,
    },
  }),
  // LibreChat's packages/api/src/utils/env.ts, with the headers of its librechat.yaml; `user` is its own.
  librechat: ({ id }) => ({
    headers: { 'X-Memory-User': id, 'X-Session-ID': chatId, 'X-Memory-Sessions': 'core' },
    more: { user: id },
  }),
  // add_headers_to_llm_call of litellm/proxy/litellm_pre_call_utils.py, and `extra_headers` of the model.
  litellm: ({ id, email }) => ({
    headers: {
      'X-Memory-User-From': 'x-litellm-user_api_key_user_id',
      'x-litellm-user_api_key_hash':
        '88dc28d0f030c55ed4ab77ed8faf098196cb1c05df778539800c9f1243fe6b4b',
      'x-litellm-user_api_key_spend': '0.25',
      'x-litellm-user_api_key_user_id': id,
      'x-litellm-user_api_key_user_email': email,
      'x-litellm-user_api_key_auth_metadata': '{}',
    },
  }),
  // Open WebUI before LiteLLM, whose forward_client_headers_to_llm_api passes its x- headers on.
  'open-webui, litellm': ({ id, email }) => ({
    headers: {
      'X-Memory-User': id,
      'X-OpenWebUI-User-Email': email,
      'x-litellm-user_api_key_user_id': 'default_user_id',
    },
  }),
}

const chat = async ({ headers, more }: Sent, content: string, stream: boolean) => {
  const response = await fetch(`${base}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify({
      model: 'openai/gpt-4o-mini',
      stream,
      messages: [{ role: 'user', content }],
      ...more,
    }),
  })
  await response.text()
  return response.status
}

for (const [program, sends] of Object.entries(programs)) {
  t.test(`${program}: two users never see each other`, async t => {
    const [ada, bob] = people(program).map(sends) as [Sent, Sent]
    t.equal(await chat(ada, 'My spare key hangs behind the clock.', true), 200)
    t.equal(await chat(bob, 'My spare key lies under the mat.', false), 200)
    await waitUntilIdle(backend)
    for (const [sent, own, others] of [
      [ada, 'behind the clock', 'under the mat'],
      [bob, 'under the mat', 'behind the clock'],
    ] as const) {
      t.equal(await chat(sent, 'Where is my spare key?', false), 200)
      const { body, headers } = provider.requests.at(-1)!
      t.match(body.toString(), own)
      t.notMatch(body.toString(), others)
      const told = JSON.stringify(headers)
      t.notMatch(told, /id-of-|@example|memory-user|Byron/i, 'the provider learns of no user')
      const mcp = await connectMcp(t, base, key, { headers: sent.headers })
      const found = await mcp.callTool({ name: 'search', arguments: { query: 'spare key' } })
      t.match(JSON.stringify(found), own)
      t.notMatch(JSON.stringify(found), others)
    }
    await waitUntilIdle(backend)
  })
}

t.test('400: what a program sends that was not set up: no user, or a template', async t => {
  const asked = provider.requests.length
  const unset: Record<string, Record<string, string>> = {
    'no user': {},
    'an empty user': { 'X-Memory-User': '' },
    'a template': { 'X-Memory-User': '{{LIBRECHAT_USER_ID}}' },
    'a missing header': { 'X-Memory-User-From': 'x-litellm-user_api_key_user_id' },
    'a header of secrets': { 'X-Memory-User-From': 'authorization' },
    'no name of a header': { 'X-Memory-User-From': 'x y' },
    'two users': { 'X-Memory-User': 'ada', 'X-Memory-User-From': 'x-id', 'x-id': 'bob' },
  }
  for (const [what, headers] of Object.entries(unset))
    t.equal(await chat({ headers }, 'hello', false), 400, what)
  t.equal(provider.requests.length, asked)
  const stats = await createTestClient(base, key).get('/v1/memory/stats', {
    'x-memory-user-from': 'x-id',
    'x-id': 'ada',
  })
  t.equal(stats.status, 200)
})
