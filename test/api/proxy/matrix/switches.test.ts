import t from 'tap'
import { startJobWorkers } from '#test/support/start/api.ts'
import { defaultReply } from '#test/support/doubles/model-provider/fixtures.ts'
import { startProxyFixture } from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { readDocuments, insertMemories } from '#test/support/start/insert-memories.ts'
import { waitUntilIdle } from '#test/support/checks/observe-jobs.ts'
import { callModel, proxyDialects } from '#test/support/samples/proxy-dialects.ts'

/** For each dialect: what every switch means, in every place, and that none of them is passed on. */

const { provider, backend, base, newKey } = await startProxyFixture(t)
await startJobWorkers(backend, 'ingest')

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
  { how: 'store_response false', body: { store_response: false }, recalls: true, stores: 'user' },
  { how: 'memory_ttl', body: { memory_ttl: 3_600 }, recalls: true, stores: 'both' },
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

/** What a row should leave in its session. */
const kept = { both: [defaultReply, said], user: [said], reply: [defaultReply], nothing: [] }

for (const dialect of proxyDialects) {
  t.test(
    `${dialect.format}: every switch means what the table says, and none is passed on`,
    async t => {
      const key = await newKey()
      await insertMemories(backend, key, [{ text: known }])
      for (const { how, suffix = '', headers, query, body, message, recalls } of rows) {
        const response = await callModel(base, key + suffix, dialect, said, {
          headers: { ...headers, 'x-session-id': how },
          ...(query && { query }),
          ...(message && { message }),
          ...(body && { more: body }),
        })
        const answered = await response.text()
        t.equal(response.status, 200, `${how}: ${response.status === 200 ? '' : answered}`)
        const seen = provider.requests.at(-1)!
        const sent = seen.body.toString()
        t.equal(sent.includes('behind the clock'), recalls, `${how}: recalls`)
        if (!recalls)
          t.equal(sent, JSON.stringify(dialect.body(said)), `${how}: the body as without`)
        t.notMatch(sent, /"memory|session_id/, `${how}: no switch in the body`)
        t.notMatch(seen.url, /[?&](memory|mode|store)=/, `${how}: none in the address`)
        t.notOk(
          seen.headers.some(([name]) => /^x-memory|^x-session/i.test(name)),
          `${how}: none in a header`,
        )
      }
      await waitUntilIdle(backend)
      const documents = await readDocuments(backend, key)
      for (const { how, stores } of rows) {
        const mine = documents.filter(({ session }) => session === how)
        t.same(
          mine.map(({ text }) => text).toSorted(),
          kept[stores].toSorted(),
          `${how}: ${stores}`,
        )
      }
    },
  )
}

t.test(
  'store and ttl in a body: heard, or the provider’s own and passed on as they came',
  async t => {
    const key = await newKey()
    const heard = { openai: [], responses: [], anthropic: ['store', 'ttl'], google: ['ttl'] }
    const more = { store: false, ttl: 3_600 }
    const earliest = Date.now() + 3_500_000
    for (const dialect of proxyDialects) {
      const ours: string[] = heard[dialect.format]
      const headers = { 'x-session-id': dialect.format }
      const answer = await callModel(base, key, dialect, said, { more, headers })
      t.equal(answer.status, 200, await answer.text())
      const passed = Object.entries(more).filter(([name]) => !ours.includes(name))
      t.equal(
        provider.requests.at(-1)!.body.toString(),
        JSON.stringify({ ...dialect.body(said), ...Object.fromEntries(passed) }),
        dialect.format,
      )
    }
    await waitUntilIdle(backend)
    for (const document of await readDocuments(backend, key)) {
      const ours: string[] = heard[document.session as keyof typeof heard]
      t.notOk(document.text === said && ours.includes('store'), document.session)
      const end = document.expires_at?.getTime()
      t.equal(end !== undefined && end > earliest, ours.includes('ttl'), document.session)
    }
  },
)

t.test('400: a switch that is none is named, and nothing is asked of the provider', async t => {
  const key = await newKey()
  const before = provider.requests.length
  const tries: { headers?: Record<string, string>; query?: string; more?: object }[] = [
    { headers: { 'x-memory-mode': 'sometimes' } },
    { headers: { 'x-memory-store': 'yes' } },
    { query: 'memory=perhaps' },
    { query: 'mode=loud' },
    { more: { memory: 'off' } },
    { more: { memory_mode: 'quiet' } },
    { more: { session_id: 7 } },
    { more: { memory_ttl: 0 } },
    { more: { store_response: 'no' } },
  ]
  for (const wrong of tries) {
    for (const dialect of proxyDialects) {
      const response = await callModel(base, key, dialect, said, wrong)
      t.equal(response.status, 400, JSON.stringify(wrong))
      const { error } = (await response.json()) as { error: { message: string } }
      t.match(error.message, /memory|mode|store|session/i)
    }
  }
  t.equal(provider.requests.length, before)
})
