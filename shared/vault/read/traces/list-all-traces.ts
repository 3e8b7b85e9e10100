import type { TracePolicy } from '#shared/domain/trace-policy.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'
import {
  listCallTraces,
  type StoredCallTrace,
} from '#shared/vault/read/traces/call-traces.postgres.ts'

/** Rows per statement: the longest trace has some 100 kB. */
const pageRows = 50

/**
 * Every trace that a vault may show under a policy, newest first, one page in memory at a time. A call that
 * ends meanwhile is not among them.
 */
export async function* listAllCallTraces(
  query: Query,
  { vault, epoch }: { vault: string; epoch: number },
  { mode, days }: TracePolicy,
): AsyncGenerator<StoredCallTrace> {
  if (mode === 'off') return
  let before: string | undefined
  for (;;) {
    const page = { before, limit: pageRows }
    const traces = await listCallTraces(query, { vault, epoch, days }, page)
    yield* traces
    if (traces.length < pageRows) return
    before = traces.at(-1)!.id
  }
}
