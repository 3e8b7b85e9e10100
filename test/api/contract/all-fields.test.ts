import t, { type Test } from 'tap'
import { contractDocument, fieldsOf } from '#api/contract/document.ts'
import { buildOrg } from '#test/support/start/admin.ts'
import { createTestClient, type TestClient } from '#test/support/start/api.ts'
import { startProxyFixture } from '#test/support/doubles/model-provider/proxy-fixture.ts'

/* Bodies with all fields of their tables at once are taken. */

const { provider, backend, base, newKey, owner } = await startProxyFixture(t)
const { endpoints } = contractDocument
const namesOf = (operation: string) => fieldsOf(endpoints[operation]!.body!.schema).names.toSorted()

/** For each model call: fields that are the service's own, and reach no provider. */
const switches = {
  memory: true,
  memory_mode: 'on',
  memory_store: false,
  memory_store_response: false,
  store_response: false,
  memory_ttl: 60,
  memory_verbatim: true,
  memory_tell_absence: true,
  memory_share: false,
  memory_user: 'ada',
  context_limit: 3,
  density: 'low',
  session_id: 'trip',
}
const said = { role: 'user', content: 'Where is the key?' }
const sampling = { temperature: 0.5, top_p: 0.9, stream: false }
const gemini = {
  contents: [{ role: 'user', parts: [{ text: said.content }] }],
  systemInstruction: { parts: [{ text: 'Be short.' }] },
  generationConfig: {
    temperature: 0.5,
    topP: 0.9,
    topK: 4,
    maxOutputTokens: 50,
    stopSequences: ['END'],
  },
  safetySettings: [],
}

/** As `switches`, where no provider has fields of these names. */
const plainSwitches: Record<string, object> = {
  anthropicMessages: { store: false, ttl: 60 },
  generateContent: { ttl: 60 },
  streamGenerateContent: { ttl: 60 },
  generateContentBeta: { ttl: 60 },
  streamGenerateContentBeta: { ttl: 60 },
}

/** By operation: the fields of the provider, and what of them reaches it under another name. */
const modelCalls: Record<string, { body: object; model?: string }> = {
  chat: {
    model: 'gpt-5',
    body: {
      model: 'openai/gpt-5',
      messages: [said],
      ...sampling,
      max_tokens: 50,
      frequency_penalty: 0,
      presence_penalty: 0,
      stop: ['END'],
    },
  },
  responses: {
    model: 'gpt-5',
    body: {
      model: 'openai/gpt-5',
      input: [said],
      instructions: 'Be short.',
      ...sampling,
      max_output_tokens: 50,
      previous_response_id: null,
      background: null,
    },
  },
  anthropicMessages: {
    body: {
      model: 'claude-sonnet-5',
      messages: [said],
      system: 'Be short.',
      ...sampling,
      max_tokens: 50,
      top_k: 4,
      stop_sequences: ['END'],
    },
  },
  generateContent: { body: gemini },
  streamGenerateContent: { body: gemini },
  generateContentBeta: { body: gemini },
  streamGenerateContentBeta: { body: gemini },
}

for (const [operation, { body, model }] of Object.entries(modelCalls)) {
  t.test(`${operation}: the provider gets its fields, and none of the service's`, async t => {
    const all = { ...body, ...switches, ...plainSwitches[operation] }
    t.same(Object.keys(all).toSorted(), namesOf(operation), 'the fields of the table')
    const path = endpoints[operation]!.path.replace(':model', 'gemini-2.5-flash')
    const { status, body: answer } = await owner.post(path, all)
    t.equal(status, 200, JSON.stringify(answer))
    t.same(JSON.parse(provider.requests.at(-1)!.body.toString()), {
      ...body,
      ...(model && { model }),
    })
  })
}

/** Sends a body that must have all fields of its table. @returns the answer, a successful one. */
async function send(
  t: Test,
  client: TestClient,
  operation: string,
  path: string,
  body: object,
  headers: Record<string, string> = {},
) {
  t.same(Object.keys(body).toSorted(), namesOf(operation), `${operation}: the fields of the table`)
  const { method, answers } = endpoints[operation]!
  const { status, body: answer } = await client.send(method, path, { body, headers })
  t.ok(status in answers, `${operation}: ${status} ${JSON.stringify(answer)}`)
  return answer
}

const filter = { and: [{ or: [{ metadata: { source: { ne: 'x' } } }, { not: { tier: 2 } }] }] }
const metadata = { source: ['chat'] }
const filters = { tiers: [1], importance: 5, metadata, filter, as_of: '2026-03-01' }
const place = { session_id: 'trip', embeddings: 'local' }
const expires_at = '2099-01-01T00:00:00.000Z'

t.test('a vault: told, searched and copied', async t => {
  const client = createTestClient(base, await newKey())
  const messages = [
    {
      role: 'user',
      content: [{ type: 'text', text: 'The key hangs behind the clock.' }],
      timestamp: '2026-02-03T10:00:00Z',
      memory: true,
      name: 'Ada',
    },
  ]
  const ingested = { model: 'gpt-5', expires_at, metadata: { source: 'chat' }, share: false }
  const switches = {
    memory: true,
    memory_mode: 'on',
    store: true,
    store_response: true,
    ttl: null,
    memory_ttl: null,
  }
  const stored = { memory_store: true, memory_store_response: true }
  const memory_user = 'ada'
  await send(t, owner, 'ingest', '/v1/memory/ingest', {
    messages,
    memory_user,
    ...ingested,
    ...stored,
    ...switches,
    ...place,
  })
  const block = { density: 'low', context_limit: 3, min_relevance: 0.5 }
  await send(t, owner, 'prepare', '/v1/memory/prepare', {
    memory_tell_absence: true,
    messages,
    memory_user,
    vaults: ['own', 'user'],
    ...block,
    ...filters,
    ...switches,
    ...place,
  })
  const span = { from: '2026-02-01', to: '2026-02-28', max_tokens: 1_000, order: 'oldest_first' }
  await send(t, client, 'dateSearch', '/v1/memory/date-search', {
    query: 'key',
    source: 'core',
    ...span,
    ...filters,
    ...place,
  })
  await send(t, client, 'warmup', '/v1/memory/warmup', place)
  const copy = { destination_key: await newKey(), filter, dry_run: true, embeddings: 'local' }
  await send(t, client, 'transfer', '/v1/memory/transfer', copy)
  const graft = { ...copy, queries: ['key'], threshold: 0.5, dry_run: false }
  const prefer = { prefer: 'respond-async' }
  const begun = await send(t, client, 'graft', '/v1/memory/graft', graft, prefer)
  t.match(begun, { status: 'processing', operation_id: String })
})

t.test('keys and settings of an account', async t => {
  const kept = createTestClient(base, await newKey())
  const grace_seconds = 60
  await send(t, kept, 'rotateKey', '/v1/keys/rotate', { name: 'new', expires_at, grace_seconds })
  await owner.post('/v1/keys', { name: 'lost' })
  const { items } = (await owner.get('/v1/keys')).body
  const lost = items.find(({ name }: { name: string }) => name === 'lost')
  const path = `/v1/keys/${lost.id}/remint`
  t.match(await send(t, owner, 'remintKey', path, { name: 'found', expires_at }), { expires_at })
  const hook = {
    url: 'https://example.com/hook',
    events: ['key.revoked'],
    description: 'of the shop',
  }
  const webhooks = '/v1/account/webhooks'
  const { id, description } = await send(t, owner, 'createWebhook', webhooks, hook)
  t.equal(description, hook.description)
  const changed = {
    url: 'https://example.com/other',
    events: ['operation.finished'],
    description: '',
    active: false,
  }
  t.match(await send(t, owner, 'changeWebhook', `${webhooks}/${id}`, changed), changed)
})

t.test('an organization and its tags', async t => {
  const { admin, path } = await buildOrg(backend, base)
  const models = {
    processor_provider: 'openai',
    extract_model: 'gpt-5',
    classify_model: 'gpt-5-mini',
  }
  t.match(await send(t, admin, 'createOrg', '/v1/orgs', { name: 'Globe', ...models }), models)
  const { tag_id } = (await admin.post(`${path}/tags`, { label: 'money' })).body
  const tag = {
    label: 'finance',
    question: 'Is it about money?',
    examples: ['The budget was cut.'],
    negatives: ['The bank of the river is steep.'],
  }
  t.match(await send(t, admin, 'changeTag', `${path}/tags/${tag_id}`, tag), tag)
})
