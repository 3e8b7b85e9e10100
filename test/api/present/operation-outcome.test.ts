import t from 'tap'
import { presentOperationOutcome } from '#api/present/operation-outcome.ts'
import type { OperationOutcome } from '#shared/domain/operation-outcome.ts'

const id = '0199aaaa-0000-7000-8000-000000000001'
const keys = { sourceKey: 'mem_a…aaaa', destinationKey: 'mem_b…bbbb' }
const counts = { copied: 3, skipped: 2, failed: 1, tokens: 40, requestedAt: 1_790_000_000_123 }
/** Outcomes and their answers, byte for byte as former releases gave them. */
const answers: [OperationOutcome, string][] = [
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
    `{"stats":{"total":5,"failed":1,"stored":1200,"skipped":3,"memories":1203,"processed":4,` +
      `"inputItems":5},"vault":"session","errors":[{"line":4,"error":"no content"}],` +
      `"status":"partial","message":"1,200 memories stored, 3 already there, 1 faulty line left out",` +
      `"memoryKey":"mem_a…aaaa","operation_id":"${id}"}`,
  ],
  [
    { kind: 'import', lines: 2, failed: 2, stored: 0, replaced: 1, skipped: 0 },
    `{"failed":2,"status":"failed","dry_run":false,"message":"0 memories imported, 1 replaced, ` +
      `2 faulty lines left out","skipped":0,"imported":0,"replaced":1,"operation_id":"${id}"}`,
  ],
  [
    { kind: 'transfer', ...keys, ...counts, errors: ['Memories 1 to 1: away'] },
    `{"copied":3,"errors":["Memories 1 to 1: away"],"failed":1,"dry_run":false,` +
      `"operation":"transfer","provenance":{"origin_key":"mem_a…aaaa",` +
      `"transferred_at":"2026-09-21T14:13:20.123Z"},"source_key":"mem_a…aaaa",` +
      `"operation_id":"${id}","destination_key":"mem_b…bbbb","estimated_tokens":40,` +
      `"deduped_or_skipped":2}`,
  ],
  [
    { kind: 'graft', queries: ['b', 'a'], threshold: 0.35, ...keys, ...counts },
    `{"copied":3,"failed":1,"dry_run":false,"queries":["b","a"],"operation":"graft",` +
      `"threshold":0.35,"provenance":{"origin_key":"mem_a…aaaa",` +
      `"transferred_at":"2026-09-21T14:13:20.123Z"},"source_key":"mem_a…aaaa",` +
      `"operation_id":"${id}","destination_key":"mem_b…bbbb","estimated_tokens":40,` +
      `"deduped_or_skipped":2}`,
  ],
  [
    { kind: 'clear', key: 'mem_a…aaaa', inSession: false, session: null, deleted: 1, reset: false },
    `{"key":"mem_a…aaaa","reset":false,"deleted":1,"message":"Deleted 1 memory",` +
      `"session_id":null,"operation_id":"${id}"}`,
  ],
  [
    { kind: 'clear', key: 'mem_a…aaaa', inSession: true, session: 's', deleted: 2, reset: false },
    `{"key":"mem_a…aaaa","reset":false,"deleted":2,"message":"Deleted 2 memories of this session",` +
      `"session_id":"s","operation_id":"${id}"}`,
  ],
  [
    { kind: 'clear', key: 'mem_a…aaaa', inSession: false, session: null, deleted: 2, reset: true },
    `{"key":"mem_a…aaaa","reset":true,"deleted":2,"message":"Deleted 2 memories; the vault is as ` +
      `new, for any embedding model","session_id":null,"operation_id":"${id}"}`,
  ],
  [
    { kind: 'delete-ids', requested: 4, deleted: 2, failed: ['x'] },
    `{"failed":["x"],"deleted":2,"not_found":1,"requested":4,"do_deleted":2,"operation_id":"${id}",` +
      `"legacy_fallback_used":false}`,
  ],
  [
    { kind: 'expire', expired: 1 },
    `{"expired":1,"message":"1 memory was over","operation_id":"${id}"}`,
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
    `{"key":"mem_a…aaaa","dropped":2,"message":"7 memories have been embedded with local/v1",` +
      `"embedded":7,"dimension":384,"embeddings":"local/v1","operation_id":"${id}"}`,
  ],
  [
    { kind: 'retention', days: null, looked: 9, changed: 4 },
    `{"changed":4,"message":"4 of 9 memories have another end","memories":9,"operation_id":"${id}",` +
      `"retention_days":null}`,
  ],
  [
    { kind: 'failed', reason: 'conflict', error: 'It was cleared', hint: 'Try again' },
    `{"hint":"Try again","error":"It was cleared"}`,
  ],
]

for (const [outcome, body] of answers) {
  t.test(`${outcome.kind} answers as in former releases`, async t => {
    const presented = presentOperationOutcome(id, { status: 200, value: outcome })
    t.equal(JSON.stringify(presented), `{"body":${body},"status":200}`)
  })
}

t.test('an answer that a former release stored is passed through', async t => {
  const value = { deleted: 3, do_deleted: 3, zoo: 1, a: { b: [] } }
  const presented = presentOperationOutcome(id, { status: 409, value })
  t.equal(JSON.stringify(presented), JSON.stringify({ body: value, status: 409 }))
})

t.test('a session keeps its message when its name is removed', async t => {
  const outcome = { kind: 'clear', key: 'k', inSession: true, deleted: 1, reset: false } as const
  const { body } = presentOperationOutcome(id, {
    status: 200,
    value: { ...outcome, session: null },
  })
  t.match(body, { session_id: null, message: 'Deleted 1 memory of this session' })
})
