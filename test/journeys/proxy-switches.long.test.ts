import t from 'tap'
import { startJobWorkers } from '#test/support/api.ts'
import { waitUntilSettled } from '#test/support/exchange-journal.ts'
import { defaultReply } from '#test/support/model-provider/fixtures.ts'
import { startProxyFixture, type FamilyName } from '#test/support/model-provider/proxy-fixture.ts'
import { readDocuments, insertMemories } from '#test/support/insert-memories.ts'

const world = await startProxyFixture(t)
const { provider, backend, base } = world
await startJobWorkers(backend)

const known = 'The cellar key hangs behind the clock.'
const said = 'Where does the cellar key hang?'

/** How a request speaks about its memory, and what it means. */
type Row = {
  how: string
  suffix?: string
  headers?: Record<string, string>
  query?: string
  body?: Record<string, unknown>
  /** On the one message of the user. */
  message?: Record<string, unknown>
  recalls: boolean
  stores: 'both' | 'user' | 'reply' | 'nothing'
}

const rows: Row[] = [
  { how: 'no switch', recalls: true, stores: 'both' },
  { how: ':read', suffix: ':read', recalls: true, stores: 'nothing' },
  { how: ':write', suffix: ':write', recalls: false, stores: 'both' },
  { how: ':off', suffix: ':off', recalls: false, stores: 'nothing' },
  ...(['on', 'read', 'write', 'off'] as const).flatMap((mode): Row[] => {
    const recalls = mode === 'on' || mode === 'read'
    const stores = mode === 'on' || mode === 'write' ? 'both' : 'nothing'
    const means = { recalls, stores } as const
    return [
      { how: `X-Memory-Mode: ${mode}`, headers: { 'x-memory-mode': mode }, ...means },
      { how: `memory_mode ${mode}`, body: { memory_mode: mode }, ...means },
    ]
  }),
  { how: '?memory=off', query: 'memory=off', recalls: false, stores: 'nothing' },
  { how: '?mode=read', query: 'mode=read', recalls: true, stores: 'nothing' },
  { how: '?store=false', query: 'store=false', recalls: true, stores: 'reply' },
  {
    how: '?store=false, nor the reply',
    query: 'store=false',
    headers: { 'x-memory-store-response': 'false' },
    recalls: true,
    stores: 'nothing',
  },
  {
    how: 'X-Memory-Store: false',
    headers: { 'x-memory-store': 'false' },
    recalls: true,
    stores: 'reply',
  },
  {
    how: 'X-Memory-Store-Response: false',
    headers: { 'x-memory-store-response': 'false' },
    recalls: true,
    stores: 'user',
  },
  { how: 'memory false', body: { memory: false }, recalls: false, stores: 'nothing' },
  { how: 'memory true', body: { memory: true }, recalls: true, stores: 'both' },
  { how: 'memory_store false', body: { memory_store: false }, recalls: true, stores: 'reply' },
  {
    how: 'memory_store false, memory_store_response false',
    body: { memory_store: false, memory_store_response: false },
    recalls: true,
    stores: 'nothing',
  },
  {
    how: 'memory_store_response false',
    body: { memory_store_response: false },
    recalls: true,
    stores: 'user',
  },
  { how: 'a message not to keep', message: { memory: false }, recalls: true, stores: 'reply' },
  {
    how: 'a message not to keep, nor the reply',
    message: { memory: false },
    headers: { 'x-memory-store-response': 'false' },
    recalls: true,
    stores: 'nothing',
  },
  { how: 'memory_verbatim', body: { memory_verbatim: true }, recalls: true, stores: 'both' },
  {
    how: 'a suffix narrows a header',
    suffix: ':read',
    headers: { 'x-memory-mode': 'write' },
    recalls: false,
    stores: 'nothing',
  },
  {
    how: 'a header does not widen a body',
    headers: { 'x-memory-mode': 'on', 'x-memory-store': 'true' },
    body: { memory_mode: 'read', memory_store: false },
    recalls: true,
    stores: 'nothing',
  },
]

const requests: Record<FamilyName, { path: string; body(message: object): object }> = {
  openai: {
    path: '/v1/chat/completions',
    body: message => ({
      model: 'gpt-4o-mini',
      messages: [{ role: 'user', content: said, ...message }],
    }),
  },
  anthropic: {
    path: '/v1/messages',
    body: message => ({
      model: 'claude-sonnet-5',
      max_tokens: 50,
      messages: [{ role: 'user', content: said, ...message }],
    }),
  },
  google: {
    path: '/v1/models/gemini-2.5-flash:generateContent',
    body: message => ({ contents: [{ role: 'user', parts: [{ text: said }], ...message }] }),
  },
}

/** What a row should leave in the vault, beside what was there. */
const kept = { both: [defaultReply, said], user: [said], reply: [defaultReply], nothing: [] }

for (const [family, request] of Object.entries(requests)) {
  t.test(`${family}: every switch means what the table says, and none is passed on`, async t => {
    const keys = await Promise.all(rows.map(() => world.newKey()))
    for (const [
      index,
      { how, suffix = '', headers, query, body, message, recalls },
    ] of rows.entries()) {
      const key = keys[index]!
      await insertMemories(backend, key, [{ text: known }])
      const response = await fetch(`${base}${request.path}${query ? `?${query}` : ''}`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          authorization: `Bearer ${key}${suffix}`,
          ...headers,
        },
        body: JSON.stringify({ ...request.body(message ?? {}), ...body }),
      })
      const answered = await response.text()
      t.equal(response.status, 200, `${how}: ${response.status === 200 ? '' : answered}`)
      const seen = provider.requests.at(-1)!
      const sent = seen.body.toString()
      t.equal(sent.includes('behind the clock'), recalls, `${how}: recalls`)
      if (!recalls) t.equal(sent, JSON.stringify(request.body({})), `${how}: the body as without`)
      t.notMatch(sent, /"memory|session_id/, `${how}: no switch in the body`)
      t.notMatch(seen.url, /[?&](memory|mode|store)=/, `${how}: none in the address`)
      t.notOk(
        seen.headers.some(([name]) => /^x-memory|^x-session/i.test(name)),
        `${how}: none in a header`,
      )
    }
    await waitUntilSettled(backend)
    for (const [index, { how, stores }] of rows.entries()) {
      const texts = (await readDocuments(backend, keys[index]!)).map(({ text }) => text)
      t.same(texts.toSorted(), [known, ...kept[stores]].toSorted(), `${how}: stores ${stores}`)
    }
  })
}

t.test('400: a switch that is none is named, and nothing is asked of the provider', async t => {
  const key = await world.newKey()
  const before = provider.requests.length
  const tries: [string, Record<string, string>, object][] = [
    ['', { 'x-memory-mode': 'sometimes' }, {}],
    ['', { 'x-memory-store': 'yes' }, {}],
    ['?memory=perhaps', {}, {}],
    ['?mode=loud', {}, {}],
    ['', {}, { memory: 'off' }],
    ['', {}, { memory_mode: 'quiet' }],
    ['', {}, { session_id: 7 }],
  ]
  for (const [query, headers, body] of tries) {
    for (const request of Object.values(requests)) {
      const response = await fetch(`${base}${request.path}${query}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-memory-key': key, ...headers },
        body: JSON.stringify({ ...request.body({}), ...body }),
      })
      const { error } = (await response.json()) as { error: { message: string } }
      t.equal(response.status, 400, `${query} ${JSON.stringify({ ...headers, ...body })}`)
      t.match(error.message, /memory|mode|store|session/i)
    }
  }
  t.equal(provider.requests.length, before)
})
