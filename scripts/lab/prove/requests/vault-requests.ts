import {
  note,
  question,
  scratchSession,
  session,
  answered,
  listed,
  paged,
  scratch,
  plain,
  ownQuestion,
  type Answer,
  type RequestPlan,
} from '#scripts/lab/prove/requests/request-plan.ts'

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
    body: input => ({
      messages: [{ role: 'user', content: note(input), name: input.word }],
      ...(input.random() < 0.3 && { session_id: scratchSession }),
    }),
    keeps: answered('id', 'operation_id'),
  },
  search: {
    body: input => ({
      query: question(input),
      limit: 50,
      ...(input.random() < 0.2 && { vaults: ['own', 'user', 'team'] }),
    }),
    headers: (input): Record<string, string> =>
      input.random() < 0.3 ? { 'x-session-id': session(input) } : {},
  },
  prepare: {
    body: input => ({
      messages: [{ role: 'user', content: question(input) }],
      ...(input.random() < 0.3 && { session_id: session(input) }),
      ...(input.random() < 0.2 && { vaults: ['own', 'user', 'team'] }),
    }),
  },
  dateSearch: {
    body: input => ({
      from: '2020-01-01',
      to: '2100-01-01',
      max_tokens: 1_000,
      ...(input.random() < 0.5 && { query: question(input) }),
      ...(input.random() < 0.2 && { source: 'org' }),
    }),
  },
  list: paged(
    'listCursor',
    ({ random, foreignWord }): Record<string, string> =>
      random() < 0.2 ? { limit: '50' } : { search: random() < 0.8 ? 'jots' : foreignWord },
    ({ items }) => scratch(items, 'memory_id', 'memory'),
  ),
  listSessions: paged('sessionsCursor'),
  profile: plain,
  stats: plain,
  statsOfKey: plain,
  warmup: { body: () => ({}) },
  inspect: { body: ({ id }) => ({ memory_id: id('memory') }) },
  edit: {
    body: input => ({ memory_id: input.id('memory', 'own'), text: note(input) }),
  },
  feedback: {
    body: ({ random }) => ({ feedback: random() < 0.5 ? 'wrong' : 'right' }),
  },
  feedbackOfMany: { body: ({ id }) => ({ ids: [id('memory', 'own')], feedback: 'right' }) },
  deleteIds: { body: ({ id }) => ({ ids: [id('memory', 'own')] }) },
  clearMemory: {
    headers: input => ({ 'x-session-id': session(input) }),
  },
  checkout: {
    body: ({ random }) => ({ tier: random() < 0.7 ? 1 : 2, max_tokens: 1_000 }),
    keeps: answered('batch', 'batch_id'),
  },
  commit: {
    body: ({ word, id }) => ({
      batch_id: id('batch', 'own'),
      entries: [{ text: `${word} concludes that the harbour is old`, importance: 5 }],
    }),
    keeps: ({ created }) => (created as Answer[]).map(({ id }) => ['memory', id]),
  },
  upload: { type: lines, body: input => JSON.stringify({ content: note(input) }) },
  storeFile: {
    type: 'text/plain',
    query: ({ word, random }) => ({
      name: 'harbour.txt',
      file_id: `file-${word}-${random() < 0.5 ? 'one' : 'two'}`,
    }),
    body: input => note(input),
    keeps: answered('file', 'file_id'),
  },
  listFiles: paged('filesCursor'),
  downloadFile: { query: ({ id }) => ({ file_id: id('file', 'any') }) },
  deleteFile: { query: ({ id }) => ({ file_id: id('file', 'take') }) },
  importVault: {
    type: lines,
    query: ({ random }) => ({ on_conflict: random() < 0.5 ? 'skip' : 'replace' }),
    body: input =>
      JSON.stringify({
        id: input.id('memory', 'own'),
        tier: 1,
        role: 'user',
        content: note(input),
        timestamp: 1,
        session_id: null,
      }),
  },
  exportVault: {
    query: (input): Record<string, string> =>
      input.random() < 0.5 ? {} : { session_id: session(input) },
  },
  reembed: { isRare: true, body: () => ({ embeddings: 'local' }) },
  // Two whole keys permit a copy between their vaults: of another tenant's key it has a part, or one without the right to store.
  transfer: { isRare: true, body: input => ({ destination_key: input.destination() }) },
  graft: {
    body: input => ({
      destination_key: input.destination(),
      // Its operation returns them later.
      queries: [ownQuestion(input)],
      threshold: 0.1,
      dry_run: input.random() < 0.5,
    }),
  },
  listOperations: paged('operationsCursor', undefined, listed('id', 'operation_id', 'items')),
  readOperation: plain,
  cancelOperation: plain,
  usage: { query: () => ({ by_day: 'true' }) },
  listTraces: { keeps: listed('traceId', 'trace_id', 'items') },
  listRecalled: plain,
  readTrace: plain,
  listShared: plain,
  changeSharing: { body: ({ random }) => ({ shares: random() < 0.5 }) },
  withdrawShared: plain,
}
