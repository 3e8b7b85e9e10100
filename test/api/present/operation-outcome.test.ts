import t from 'tap'
import { presentOperationOutcome } from '#api/present/operation.ts'
import type { OperationOutcome } from '#shared/domain/operation-outcome.ts'

const id = '0199aaaa-0000-7000-8000-000000000001'
const keys = { sourceKey: 'mem_a…aaaa', destinationKey: 'mem_b…bbbb' }
const counts = { copied: 3, skipped: 2, failed: 1, tokens: 40, requestedAt: 1_790_000_000_123 }
/** Outcomes and their answers, with their fields in the order of the contract. */
const answers: [OperationOutcome, string][] = [
  [
    { kind: 'ingest', stored: 1 },
    `{"accepted":true,"queued":false,"operation_id":"${id}","stored":1,"message":"Stored 1 memory"}`,
  ],
  [
    {
      kind: 'upload',
      key: 'mem_a…aaaa',
      inSession: true,
      lines: 5,
      failed: 1,
      memories: 1_203,
      stored: 1_200,
      skipped: 3,
      errors: [{ line: 4, error: 'no content' }],
    },
    `{"status":"partial","memoryKey":"mem_a…aaaa","vault":"session","stats":{"inputItems":5,` +
      `"memories":1203,"stored":1200,"skipped":3,"failed":1,"total":5,"processed":4},` +
      `"errors":[{"line":4,"error":"no content"}],"operation_id":"${id}",` +
      `"message":"1,200 memories stored, 3 already there, 1 faulty line left out"}`,
  ],
  [
    { kind: 'import', lines: 2, failed: 2, stored: 0, replaced: 1, skipped: 0, cancelled: true },
    `{"dry_run":false,"status":"failed","imported":0,"replaced":1,"skipped":0,"failed":2,` +
      `"operation_id":"${id}",` +
      `"message":"cancelled, 0 memories imported, 1 replaced, 2 faulty lines left out"}`,
  ],
  [
    { kind: 'transfer', ...keys, ...counts, errors: ['Memories 1 to 1: away'] },
    `{"operation":"transfer","dry_run":false,"source_key":"mem_a…aaaa",` +
      `"destination_key":"mem_b…bbbb","copied":3,"deduped_or_skipped":2,"failed":1,` +
      `"estimated_tokens":40,"provenance":{"origin_key":"mem_a…aaaa",` +
      `"transferred_at":"2026-09-21T14:13:20.123Z"},"errors":["Memories 1 to 1: away"],` +
      `"operation_id":"${id}"}`,
  ],
  [
    { kind: 'graft', queries: ['b', 'a'], threshold: 0.35, ...keys, ...counts },
    `{"operation":"graft","dry_run":false,"source_key":"mem_a…aaaa",` +
      `"destination_key":"mem_b…bbbb","copied":3,"deduped_or_skipped":2,"failed":1,` +
      `"estimated_tokens":40,"provenance":{"origin_key":"mem_a…aaaa",` +
      `"transferred_at":"2026-09-21T14:13:20.123Z"},"operation_id":"${id}",` +
      `"queries":["b","a"],"threshold":0.35}`,
  ],
  [
    { kind: 'clear', key: 'mem_a…aaaa', inSession: false, session: null, deleted: 1, reset: false },
    `{"key":"mem_a…aaaa","session_id":null,"deleted":1,"reset":false,"operation_id":"${id}",` +
      `"message":"Deleted 1 memory"}`,
  ],
  [
    { kind: 'clear', key: 'mem_a…aaaa', inSession: true, session: 's', deleted: 2, reset: false },
    `{"key":"mem_a…aaaa","session_id":"s","deleted":2,"reset":false,"operation_id":"${id}",` +
      `"message":"Deleted 2 memories of this session"}`,
  ],
  [
    { kind: 'clear', key: 'mem_a…aaaa', inSession: false, session: null, deleted: 2, reset: true },
    `{"key":"mem_a…aaaa","session_id":null,"deleted":2,"reset":true,"operation_id":"${id}",` +
      `"message":"Deleted 2 memories; the vault is as new, for any embedding model"}`,
  ],
  [
    { kind: 'delete-ids', requested: 4, deleted: 2, failed: ['x'] },
    `{"requested":4,"deleted":2,"do_deleted":2,"not_found":1,"legacy_fallback_used":false,` +
      `"failed":["x"],"operation_id":"${id}"}`,
  ],
  [
    { kind: 'expire', expired: 1 },
    `{"expired":1,"operation_id":"${id}","message":"1 memory was over"}`,
  ],
  [
    {
      kind: 'reembed',
      key: 'mem_a…aaaa',
      model: 'local/v1',
      dimension: 384,
      embedded: 7,
      dropped: 2,
    },
    `{"key":"mem_a…aaaa","embeddings":"local/v1","dimension":384,"embedded":7,"dropped":2,` +
      `"operation_id":"${id}","message":"7 memories have been embedded with local/v1"}`,
  ],
  [
    { kind: 'retention', days: null, looked: 9, changed: 4 },
    `{"retention_days":null,"memories":9,"changed":4,"operation_id":"${id}",` +
      `"message":"4 of 9 memories have another end"}`,
  ],
  [
    { kind: 'failed', reason: 'conflict', error: 'It was cleared', hint: 'Try again' },
    `{"error":"It was cleared","hint":"Try again"}`,
  ],
]

for (const [outcome, body] of answers) {
  t.test(`${outcome.kind}: the fields stand in the order of the contract`, async t => {
    const presented = presentOperationOutcome(id, { status: 200, value: outcome })
    t.equal(JSON.stringify(presented), `{"body":${body},"status":200}`)
  })
}

t.test('a session keeps its message when its name is removed', async t => {
  const outcome = { kind: 'clear', key: 'k', inSession: true, deleted: 1, reset: false } as const
  const { body } = presentOperationOutcome(id, {
    status: 200,
    value: { ...outcome, session: null },
  })
  t.match(body, { session_id: null, message: 'Deleted 1 memory of this session' })
})
