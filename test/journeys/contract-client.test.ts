import t, { type Test } from 'tap'
import { buildKey } from '#test/support/start/api.ts'
import { buildAdmin } from '#test/support/start/admin.ts'
import { fieldsOf, isField } from '#test/support/checks/contract-shapes.ts'
import { providerKey, startModelProvider } from '#test/support/doubles/model-provider.ts'
import { startService } from '#test/support/start/start-service.ts'

/**
 * A client that knows nothing but the two documents of the contract runs all of it: it sends bodies with `fetch` and no
 * content type, appends suffixes to its key, keeps times as `Date`, sends resources back as it got them, and breaks on
 * a field of the contract that is missing or of another type.
 */

const provider = await startModelProvider(t)
const { backend, base } = await startService(t, { env: provider.env })
const admin = (await buildAdmin(backend)).key

type Body = Record<string, unknown>
// oxlint-disable-next-line typescript/no-explicit-any -- the decoder has checked what is read
type Decoded = any

type Options = {
  body?: Body | string
  headers?: Record<string, string>
  status?: number
  is?: string
}

/** Sends bodies without naming their type, and decodes the fields that the contract names. */
function strictClient(t: Test) {
  async function call(key: string, request: string, options: Options = {}): Promise<Decoded> {
    const [method, path] = request.split(' ') as [string, string]
    const { body, headers = {}, status = 200, is = '' } = options
    const response = await fetch(base + path, {
      method,
      headers: { authorization: `Bearer ${key}`, ...headers },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    t.equal(response.status, status, `${request}: ${text.slice(0, 300)}`)
    const answer: Decoded = JSON.parse(text)
    for (const [field, type] of fieldsOf(is)) {
      const value = field.split('.').reduce((part: Decoded, name) => part?.[name], answer)
      t.ok(isField(type, value), `${request}: ${field} is ${type}: ${JSON.stringify(value)}`)
    }
    return answer
  }
  function decodeRows(rows: Body[], is: string): void {
    for (const each of rows) {
      for (const [field, type] of fieldsOf(is))
        t.ok(isField(type, each[field]), `${field} is ${type}: ${JSON.stringify(each[field])}`)
    }
  }
  return { call, decodeRows }
}

const debt =
  'reflection.unconsolidated.raw.units:integer reflection.unconsolidated.raw.est_tokens:integer reflection.unconsolidated.raw.importance_equiv:number reflection.unconsolidated.tier2.count:integer reflection.threshold_tokens:integer reflection.threshold_importance:integer reflection.suggestion:string?'
const row =
  'id:uuid tier:integer role:string content:string score:number window:string timestamp:iso source:string'

t.test('the per-key vault', async t => {
  const { call, decodeRows } = strictClient(t)
  const owner = await buildKey(backend)
  await call(owner, 'GET /health', { is: 'status:string timestamp:iso' })
  const { key } = await call(owner, 'POST /v1/keys', {
    body: { name: 'Ada' },
    status: 201,
    is: 'key:string name:string created_at:iso',
  })

  const messages = [
    { role: 'user', content: 'My sister Nora plays the cello.' },
    { role: 'assistant', content: 'How lovely.' },
  ]
  const ingested = `accepted:boolean queued:boolean message:string ${debt}`
  for (const suffix of ['', ':read', ':write', ':off']) {
    const answer = await call(`${key}${suffix}`, 'POST /v1/memory/ingest', {
      body: { messages, user_id: 'u-17' },
      status: 202,
      is: `${ingested} retrieval_tokens:integer response_tokens:integer`,
    })
    t.equal(answer.accepted, suffix === '' || suffix === ':write')
  }
  await call(key, 'POST /v1/memory/ingest?wait=true', { body: { messages } })

  const prepared = `${debt} context:string? memories_found:integer memory_tokens:integer retrieval_tokens:integer tokens_billed:integer metrics.total_ms:number`
  const question = [{ role: 'user', content: 'What does my sister Nora play?' }]
  for (const suffix of ['', ':read', ':write', ':off']) {
    const body = { messages: question, model: 'gpt-5', density: 'high' }
    const { context } = await call(`${key}${suffix}`, 'POST /v1/memory/prepare', {
      body,
      is: prepared,
    })
    t.equal(context !== null, suffix === '' || suffix === ':read', suffix)
    const found = await call(`${key}${suffix}`, 'POST /v1/memory/search', {
      body: { query: 'cello', limit: 5 },
      is: `${debt} query:string sessionId:string? memoryKey:string totalMemories:integer tokenCount:integer windowBreakdown.hot:integer tierBreakdown.raw:integer memories:array`,
    })
    decodeRows(found.memories, row)
    t.equal(found.memories.length > 0, suffix === '' || suffix === ':read', suffix)
  }

  const line = (content: string, day: number) =>
    JSON.stringify({ content, timestamp: Date.UTC(2026, 2, day), id: day, source: 'notes' })
  await call(key, 'POST /v1/memory/upload', {
    body: Array.from({ length: 60 }, (_, i) => line(`Note ${i} of the boat.`, 1 + (i % 3))).join(
      '\n',
    ),
    is: 'status:string memoryKey:string vault:string stats:object message:string',
  })
  await call(key, 'POST /v1/memory/upload', { body: '{"text":"no content"}', status: 400 })

  const seen = new Set<string>()
  let to = new Date('2026-03-31T00:00:00Z')
  for (let page = 0; page < 20; page++) {
    const body = { from: '2026-02-01', to: to.toISOString(), max_tokens: 1_000, limit: 3 }
    const answer = await call(key, 'POST /v1/memory/date-search', {
      body,
      is: `${debt} truncated:boolean returned.from:iso returned.to:iso`,
    })
    for (const { id } of answer.memories) {
      t.notOk(seen.has(id), 'each row once')
      seen.add(id)
    }
    if (!answer.truncated) break
    to = new Date(answer.returned.from)
  }
  t.equal(seen.size, 60)
  await call(key, 'POST /v1/memory/date-search', {
    body: { from: '2999-01-01' },
    is: 'returned.from:iso',
  })

  const list = await call(key, 'GET /v1/memory/list?limit=50&_=1&tier=', {
    is: 'items:array has_more:boolean next_cursor:string? tier_counts:object',
  })
  decodeRows(list.items, 'memory_id:uuid text:string date:iso tier:integer token_count:integer')
  const first = list.items[0]
  await call(key, 'POST /v1/memory/edit', {
    body: { ...first, text: 'Note 0 of the red boat.' },
    is: 'memory_id:uuid updated:boolean date:iso tier:integer token_count:integer',
  })
  await call(`${key}:read`, 'POST /v1/memory/edit', {
    body: { memory_id: first.memory_id, text: 'x' },
    status: 403,
  })
  await call(key, 'GET /v1/memory/stats?v=2', {
    is: 'key:string memories:integer total_tokens:integer oldest:iso newest:iso',
  })
  await call(key, 'POST /v1/memory/warmup', {
    is: 'status:string memories_loaded:integer warmup_ms:number',
  })

  const batch = await call(key, 'POST /v1/memory/consolidate/checkout', {
    body: { tier: 1, limit: 10 },
    is: 'batch_id:string count:integer est_tokens:integer covers.from:iso lease_expires_at:iso memories:array source_ids:array reflection_contract.version:integer tier_definitions:object',
  })
  const committed = await call(key, 'POST /v1/memory/consolidate/commit', {
    body: {
      batch_id: batch.batch_id,
      entries: [{ text: 'The boat was noted down for days.', importance: 6 }],
    },
    is: `${debt} committed:boolean already_committed:boolean tier:integer created:array`,
  })
  await call(key, 'POST /v1/memory/inspect', {
    body: { memory_id: committed.created[0].id },
    is: 'memory_id:uuid sources:array sources_total:integer truncated:boolean',
  })
  await call(key, 'POST /v1/memory/search', { body: { query: 'boat', limit: 500, tiers: [2, 2] } })

  const other = await call(owner, 'POST /v1/keys', { body: {}, status: 201 })
  const copied = 'operation:string source_key:string destination_key:string dry_run:boolean'
  const written = `${copied} copied:integer deduped_or_skipped:integer failed:integer`
  await call(key, 'POST /v1/memory/graft', {
    body: { destination_key: other.key, queries: ['the cello of Nora'], dry_run: true },
    is: `${copied} count:integer memories:array threshold:number`,
  })
  await call(key, 'POST /v1/memory/transfer', { body: { destination_key: other.key }, is: written })
  await call(key, 'POST /v1/memory/delete-ids', {
    body: { ids: [first.memory_id] },
    is: 'requested:integer deleted:integer do_deleted:integer not_found:integer failed:array',
  })
  await call(owner, 'GET /v1/account/usage?start=2026-01-01&utm=x', {
    is: 'key:string period.start:string total_requests:integer by_model:object',
  })
  await call(owner, 'GET /v1/models', {
    is: 'providers:array models:array default:string catalog_updated:iso',
  })
  await call(key, 'DELETE /v1/memory?reset=true')
})

t.test('the proxy', async t => {
  const { call } = strictClient(t)
  const key = await buildKey(backend)
  const headers = { 'x-provider-key': providerKey('openai') }
  for (const suffix of ['', ':read', ':write', ':off']) {
    await call(`${key}${suffix}`, 'POST /v1/chat/completions', {
      body: { model: 'openai/gpt-5', messages: [{ role: 'user', content: 'Good evening' }] },
      headers,
      is: 'id:string choices:array usage.total_tokens:integer',
    })
  }
  await call(key, 'POST /v1/messages', {
    body: {
      model: 'claude-sonnet-4-5',
      max_tokens: 50,
      messages: [{ role: 'user', content: 'Hi' }],
    },
    headers: { 'x-provider-key': providerKey('anthropic'), 'anthropic-version': '2023-06-01' },
    is: 'id:string content:array stop_reason:string usage.input_tokens:integer',
  })
  await call(key, 'POST /v1/models/gemini-2.5-flash:generateContent', {
    body: { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] },
    headers: { 'x-provider-key': providerKey('google') },
    is: 'candidates:array usageMetadata:object',
  })
  const spoken = { model: 'openai/text-embedding-3-small', input: 'Good evening' }
  await call(key, 'POST /v1/embeddings', { body: spoken, headers, is: 'data:array' })
})

t.test('the organization', async t => {
  const { call, decodeRows } = strictClient(t)
  const org = await call(admin, 'POST /v1/orgs', {
    body: {
      name: 'Acme',
      processor_provider: 'openai',
      extract_model: 'a',
      classify_model: 'b',
    },
    status: 201,
    is: 'org_id:uuid name:string owner_email:string created_at:ms org_key:string',
  })
  const path = `/v1/orgs/${org.org_id}`
  const got = await call(admin, `GET ${path}`, { is: 'name:string created_at:ms' })
  await call(admin, `PATCH ${path}`, { body: got, is: 'org_id:uuid name:string' })
  await call(admin, 'GET /v1/orgs')

  const instructions = await call(admin, `GET ${path}/instructions`, {
    is: 'org_id:uuid default_on:boolean custom:string anti_rules:array exec_rules:array updated_at:ms',
  })
  await call(admin, `PUT ${path}/instructions`, { body: instructions })

  const tag = await call(admin, `POST ${path}/tags`, {
    body: {
      label: 'Budget',
      question: 'Is it about money?',
      examples: ['It costs 5 euros'],
      negatives: [],
    },
    status: 201,
    is: 'tag_id:uuid label:string question:string examples:array negatives:array created_at:ms',
  })
  await call(admin, `PATCH ${path}/tags/${tag.tag_id}`, { body: tag })
  const role = await call(admin, `POST ${path}/roles`, {
    body: { name: 'Finance', allowed_tags: ['Budget'] },
    status: 201,
    is: 'role_id:uuid org_id:uuid name:string allowed_tags:array created_at:ms',
  })
  await call(admin, `PATCH ${path}/roles/${role.role_id}`, { body: role })
  const user = await call(admin, `POST ${path}/users`, {
    body: {
      email: 'ann@example.com',
      first_name: 'Ann',
      last_name: 'Ash',
      role_ids: [role.role_id],
    },
    status: 201,
    is: 'user_id:uuid email:string role_ids:array created_at:ms',
  })
  await call(admin, `PATCH ${path}/users/${user.user_id}`, { body: user })
  const member = await call(admin, `POST ${path}/keys`, {
    body: { team_member_id: 'ann@example.com' },
    status: 201,
    is: 'key_id:string memory_key:string org_id:uuid team_member_id:string created_at:ms',
  })
  await call(admin, `GET ${path}/keys?q=ann`, { is: 'keys:array' })
  await call(member.memory_key, `GET ${path}`, { status: 401 })

  t.equal((await call(admin, `GET ${path}/keys/${member.key_id}`)).key_id, member.key_id)
  const { users } = await call(admin, `GET ${path}/users`, { is: 'users:array' })
  decodeRows(users, 'user_id:uuid email:string role_ids:array has_memory_key:boolean')
  for (const list of ['roles', 'tags']) await call(admin, `GET ${path}/${list}`)
  await call(admin, `POST ${path}/role-assignments`, {
    body: { team_member_id: 'bob', role_ids: [role.role_id] },
    is: 'user_id:uuid team_member_id:string role_ids:array',
  })
  await call(admin, `POST ${path}/users/${user.user_id}/memory-key`, { status: 201 })

  await call(admin, `POST ${path}/memories`, {
    body: {
      items: [
        { text: 'The budget is 5 million.', tags: ['Budget'] },
        { text: 'We meet on Mondays.', tags: [], confidence: 0.3 },
      ],
    },
    status: 201,
  })
  const shared = await call(admin, `GET ${path}/memories`)
  const item = shared.items.find(({ tags }: Decoded) => tags.length > 0)
  await call(admin, `PATCH ${path}/memories/${item.mem_id ?? item.id}`, {
    body: { ...item, reviewed: 1 },
  })
  await call(admin, `GET ${path}/audit?limit=10`, {
    is: 'org_id:uuid count:integer events:array',
  })
  const { review } = await call(admin, `GET ${path}/memories/review?threshold=0.6`, {
    is: 'org_id:uuid threshold:number count:integer review:array',
  })
  decodeRows(review, 'mem_id:uuid text:string tags:array confidence:number acquired_at:ms')
  for (const { mem_id: id } of review) {
    await call(admin, `POST ${path}/memories/${id}/review`, {
      body: { action: 'dismiss', tags: ['Budget'] },
    })
    await call(admin, `GET ${path}/memories/${id}/audit`)
    await call(admin, `DELETE ${path}/memories/${id}`)
  }
  t.equal(review.length, 1)
  await call(admin, `GET ${path}/debug/passes?limit=5`)
  const found = await call(member.memory_key, 'POST /v1/memory/search', {
    body: { query: 'budget', limit: 5 },
  })
  decodeRows(found.memories, row)
  t.equal(found.memories.length, 1)

  const headers = { 'x-admin-key': admin, authorization: 'Bearer a.jwt.of-a-dashboard' }
  await call(admin, 'GET /v1/orgs', { headers })
  await call(admin, `DELETE ${path}/tags/${tag.tag_id}`)
  await call(admin, `DELETE ${path}/roles/${role.role_id}`)
  await call(admin, `DELETE ${path}/keys/${encodeURIComponent(member.key_id)}`)
  await call(admin, `DELETE ${path}/users/${user.user_id}`)
  await call(admin, `DELETE ${path}`)
})
