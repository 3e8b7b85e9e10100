import {
  note,
  question,
  scratchSession,
  session,
  answered,
  listed,
  scratch,
  plain,
  told,
  type Answer,
  type Asking,
  type RequestPlan,
} from '#scripts/prove/tenants/asking.ts'

const lines = 'application/x-ndjson'

/** To a vault, and to the service itself. */
export const vaultRequests: Record<string, RequestPlan> = {
  health: plain,
  live: plain,
  ready: plain,
  information: plain,
  receiptKeys: plain,
  readReceipt: plain,

  ingest: {
    query: ({ random }) => (random() < 0.1 ? { wait: 'true' } : {}),
    body: asking => ({
      messages: [{ role: 'user', content: note(asking), name: asking.word }],
      ...(asking.random() < 0.3 && { session_id: scratchSession }),
    }),
    keeps: answered('id', 'operation_id'),
  },
  search: {
    body: asking => ({ query: question(asking), limit: 50 }),
    headers: (asking): Record<string, string> =>
      asking.random() < 0.3 ? { 'x-session-id': session(asking) } : {},
  },
  prepare: {
    body: asking => ({
      messages: [{ role: 'user', content: question(asking) }],
      ...(asking.random() < 0.3 && { session_id: session(asking) }),
    }),
  },
  dateSearch: {
    body: asking => ({
      from: '2020-01-01',
      to: '2100-01-01',
      max_tokens: 1_000,
      ...(asking.random() < 0.5 && { query: question(asking) }),
    }),
  },
  list: {
    query: ({ random, foreignWord }): Record<string, string> =>
      random() < 0.2 ? { limit: '50' } : { search: random() < 0.8 ? 'jots' : foreignWord },
    keeps: ({ items }) => scratch(items, 'memory_id', 'memory'),
  },
  listSessions: plain,
  profile: plain,
  stats: plain,
  statsOfKey: plain,
  warmup: { body: () => ({}) },
  inspect: { body: ({ id }) => ({ memory_id: id('memory') }) },
  edit: {
    body: asking => ({ memory_id: asking.ownOrForeign('memory'), text: note(asking) }),
  },
  deleteIds: { body: ({ ownOrForeign }) => ({ ids: [ownOrForeign('memory')] }) },
  clearMemory: {
    headers: asking => ({ 'x-session-id': session(asking) }),
  },
  checkout: {
    body: ({ random }) => ({ tier: random() < 0.7 ? 1 : 2, max_tokens: 1_000 }),
    keeps: answered('batch', 'batch_id'),
  },
  commit: {
    body: ({ word, ownOrForeign }) => ({
      batch_id: ownOrForeign('batch'),
      entries: [{ text: `${word} concludes that the harbour is old`, importance: 5 }],
    }),
    keeps: ({ created }) => (created as Answer[]).map(({ id }) => ['memory', id]),
  },
  upload: { type: lines, body: asking => JSON.stringify({ content: note(asking) }) },
  importVault: {
    type: lines,
    query: ({ random }) => ({ on_conflict: random() < 0.5 ? 'skip' : 'replace' }),
    body: asking =>
      JSON.stringify({
        id: asking.ownOrForeign('memory'),
        tier: 1,
        role: 'user',
        content: note(asking),
        timestamp: 1,
        session_id: null,
      }),
  },
  exportVault: plain,
  reembed: { isRare: true, body: () => ({ embeddings: 'local' }) },
  // Whoever has two whole keys may copy between them: of somebody else's there is a part, or one that may not store.
  transfer: { isRare: true, body: asking => ({ destination_key: destination(asking) }) },
  graft: {
    body: asking => ({
      destination_key: destination(asking),
      // Its operation tells them later.
      queries: [told(asking)],
      threshold: 0.1,
      dry_run: asking.random() < 0.5,
    }),
  },
  listOperations: {
    keeps: listed('id', 'operation_id', 'items'),
  },
  readOperation: plain,
  cancelOperation: plain,
  usage: { query: () => ({ by_day: 'true' }) },
  listTraces: { keeps: listed('traceId', 'trace_id', 'items') },
  listRecalled: plain,
  readTrace: plain,
  replayTrace: {
    body: asking => ({
      body: JSON.stringify({
        model: 'openai/gpt-5',
        messages: [{ role: 'user', content: told(asking) }],
      }),
    }),
  },
  listShared: plain,
  changeSharing: { body: ({ random }) => ({ shares: random() < 0.5 }) },
  withdrawShared: plain,
}

function destination({ tenant, id, random }: Asking): string {
  const key = id('destination')
  const isOwn = tenant.kept.get('destination')?.includes(key)
  return isOwn ? key : random() < 0.5 ? `${key}:off` : key.slice(0, 20)
}
