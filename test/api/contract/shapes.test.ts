import t from 'tap'
import { responseShape, contract } from '#api/contract/contract.ts'
import type { Shape } from '#shared/core/shape.ts'
import { refusalOf } from '#test/support/checks/contract.ts'

const messages = [{ role: 'user', content: 'my cat is called Ada' }]
const id = '0197a0c4-6a57-7c3e-9d0e-2f6a0d1b3c4d'

t.test('bodies that are taken', async t => {
  const bodies: [Shape<unknown>, unknown[]][] = [
    [
      contract['POST /v1/memory/ingest'].body,
      [
        { messages },
        { messages, session_id: 's', model: 'openai/gpt-5', embeddings: 'local' },
        { messages: [{ role: 'assistant', content: null, tool_calls: [{ id: 'a' }] }] },
        { messages: [{ role: 'assistant', tool_calls: [] }] },
        {
          messages: [{ role: 'user', content: [{ type: 'text', text: 'a' }, 'b', { inline: 1 }] }],
        },
        { messages: [{ role: 'tool', content: 'x', tool_call_id: 'a', memory: false }] },
        { messages: [{ role: 'user', content: 'x', timestamp: 0, name: 'Ada' }] },
      ],
    ],
    [
      contract['POST /v1/memory/search'].body,
      [
        { query: 'cat', limit: 1 },
        { query: 'cat', limit: 200, tiers: [3, 1], importance: 10 },
      ],
    ],
    [
      contract['POST /v1/memory/prepare'].body,
      [{ messages }, { messages, density: 'xhigh', context_limit: 500, tiers: [2], importance: 1 }],
    ],
    [
      contract['POST /v1/memory/date-search'].body,
      [{ from: '2026-11-20' }, { from: '2026-11-20T15:15:00Z', to: '2026-11-21T00:00:00' }],
    ],
    [contract['POST /v1/memory/consolidate/checkout'].body, [{ tier: 2, max_tokens: -5 }]],
    [
      contract['POST /v1/memory/upload'].body,
      [{ content: 'x' }, { content: 'x', timestamp: 1_735_689_600_000.5 }],
    ],
    [contract['POST /v1/keys'].body, [{}, { name: 'Ada' }]],
    [
      contract['POST /v1/chat/completions'].body,
      [{ model: 'openai/gpt-5', messages: [1], temperature: null, store: true, seed: 7 }],
    ],
    [
      contract['POST /v1/messages'].body,
      [{ model: 'a', max_tokens: 5, messages: [], system: [{ type: 'text', text: 'x' }] }],
    ],
    [contract['PATCH /v1/orgs/:orgId'].body, [{}, { name: 'Acme' }]],
  ]
  for (const [shape, values] of bodies) {
    for (const value of values) t.equal(refusalOf(shape, value), undefined, JSON.stringify(value))
  }
})

// Each field of each endpoint: test/api/routes/refusals.test.ts.
t.test('bodies that are refused, and in which words', async t => {
  const ingest = contract['POST /v1/memory/ingest'].body
  const search = contract['POST /v1/memory/search'].body
  const found = { query: 'cat', limit: 5 }
  const bodies: [Shape<unknown>, unknown, string, string?][] = [
    [ingest, {}, 'messages is required'],
    [ingest, { messages: [] }, 'messages must have at least 1 item, not 0'],
    [
      ingest,
      { messages: Array(10_001).fill(messages[0]) },
      'messages must have at most 10000 items, not 10001',
    ],
    [ingest, { messages: 'hello' }, 'messages must be a list, not "hello"'],
    [ingest, { messages: ['hello'] }, 'messages[0] must be an object, not "hello"'],
    [ingest, { messages: [{ content: 'x' }] }, 'messages[0].role is required'],
    [
      ingest,
      { messages: [...messages, { role: 'robot', content: 'x' }] },
      'messages[1].role must be one of user, assistant, system, developer, tool, not "robot"',
    ],
    [
      ingest,
      { messages: [{ role: 'user', content: 5 }] },
      'messages[0].content must be a string or a list or null, not 5',
    ],
    [
      ingest,
      { messages: [{ role: 'user', content: 'x', timestamp: 1_735_689_600 }] },
      'messages[0].timestamp must be in milliseconds since 1970; 1735689600 looks like seconds',
    ],
    [
      ingest,
      { messages, session_id: 'x'.repeat(257) },
      'session_id must have at most 256 characters, not 257',
    ],
    [ingest, { messages, session_id: 'a\r\nb' }, 'session_id must not hold control characters'],
    [ingest, { messages, sesion_id: 'x' }, 'unknown field sesion_id', 'did you mean session_id?'],
    [search, { ...found, limit: 0 }, 'limit must be at least 1, not 0'],
    [search, { ...found, limit: 2.5 }, 'limit must be a whole number, not 2.5'],
    [search, { ...found, limit: '5' }, 'limit must be a whole number, not "5"'],
    [search, { ...found, query: '' }, 'query must have at least 1 character, not 0'],
    [search, { ...found, query: { $ne: null } }, 'query must be a string, not an object'],
    [search, { ...found, tiers: [4] }, 'tiers[0] must be one of 1, 2, 3, not 4'],
    [search, { ...found, importance: 11 }, 'importance must be at most 10, not 11'],
    [search, [], 'the body must be an object, not a list'],
    [
      contract['POST /v1/memory/consolidate/commit'].body,
      { batch_id: 'b', entries: [{ text: 'x', importanse: 1 }] },
      'unknown field entries[0].importanse',
      'did you mean importance?',
    ],
    [
      contract['POST /v1/memory/delete-ids'].body,
      { ids: [id, 'x'] },
      'ids[1] must be a UUID, not "x"',
    ],
    [
      contract['POST /v1/memory/date-search'].body,
      { from: 'yesterday' },
      'from must be a date such as 2026-11-20 or a date and time such as 2026-11-20T15:15:00Z or ' +
        'milliseconds since 1970, not "yesterday"',
    ],
    [
      contract['POST /v1/chat/completions'].body,
      { model: 'a', messages: [], temperature: 2.5 },
      'temperature must be at most 2, not 2.5',
    ],
  ]
  for (const [shape, value, message, hint] of bodies) {
    const refusal = refusalOf(shape, value)
    t.equal(refusal?.reason, 'invalid', message)
    t.equal(refusal?.message, message)
    if (hint) t.equal(refusal?.hint, hint)
  }
})

t.test('queries, paths and headers are read from text', async t => {
  const list = contract['GET /v1/memory/list'].query
  t.same(list.check({ limit: '7', tier: '2' }), {
    limit: 7,
    tier: 2,
    sort: 'date',
    order: 'newest_first',
  })
  t.same(list.check({}), { limit: 50, sort: 'date', order: 'newest_first' })
  for (const query of [{ limit: '0' }, { tier: '4' }, { sort: 'x' }, { x: '1' }]) {
    t.equal(refusalOf(list, query)?.reason, 'invalid', JSON.stringify(query))
  }
  t.same(contract['POST /v1/memory/ingest'].query.check({ wait: 'true' }), { wait: true })
  t.same(contract['DELETE /v1/memory'].query.check({}), { reset: false })

  const { headers } = contract['POST /v1/memory/search']
  t.equal(refusalOf(headers, { host: 'x', 'x-session-id': 's' }), undefined)
  t.match(refusalOf(headers, { 'x-session-id': 'a\nb' }), {
    message: 'x-session-id must not hold control characters',
  })
  const { params } = contract['GET /v1/orgs/:orgId/keys/:keyId']
  t.same(params.check({ orgId: id, keyId: 'mk_org_a' }), { orgId: id, keyId: 'mk_org_a' })
  t.match(refusalOf(params, { orgId: '1', keyId: 'a' }), { message: /^orgId must be a UUID/ })
})

t.test('types and shapes agree: a checked body is typed', async t => {
  const body = contract['POST /v1/memory/graft'].body.check({
    destination_key: 'a',
    queries: ['b'],
  })
  const threshold: number = body.threshold
  t.equal(threshold, 0.6)
  const dryRun: boolean | undefined = body.dry_run
  t.equal(dryRun, undefined)
})

t.test('answers: what an endpoint may say under a status', async t => {
  const health = responseShape('GET', '/health', 200)
  t.equal(refusalOf(health, { status: 'ok', timestamp: '2026-11-20T15:15:00Z' }), undefined)
  t.match(refusalOf(health, { status: 'ok' }), { message: 'timestamp is required' })
  t.match(refusalOf(health, { status: 'ok', timestamp: '2026-11-20T15:15:00Z', uptime: 1 }), {
    message: 'unknown field uptime',
  })

  const refused = responseShape('POST', '/v1/memory/search', 401)
  t.equal(refusalOf(refused, { error: 'Invalid Memory Key' }), undefined)
  t.equal(refusalOf(refused, { error: 'Invalid Memory Key', hint: 'Send one' }), undefined)
  t.match(refusalOf(refused, { message: 'no' }), { reason: 'invalid' })

  const checkout = responseShape('POST', '/v1/memory/consolidate/checkout', 200)
  const nothing = { batch_id: null, tier: 1, count: 0, message: 'Nothing to consolidate' }
  t.equal(refusalOf(checkout, nothing), undefined)
  t.equal(refusalOf(checkout, { ...nothing, count: 1 })?.reason, 'invalid')

  t.throws(() => responseShape('POST', '/v1/memory/search', 410), /does not answer 410/)
  t.throws(() => responseShape('POST', '/v1/memory/serach', 200), /is not in the contract/)
})
