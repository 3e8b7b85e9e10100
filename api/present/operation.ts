import { presentOperationOutcome } from '#api/present/operation-outcome.ts'
import type { OperationRow } from '#shared/operations/operation-rows.postgres.ts'

/**
 * A piece of queued work as clients see it.
 *
 * @param waitingFor what does not answer, and why, where it waits for that
 */
export const presentOperation = (row: OperationRow, waitingFor?: string) => ({
  operation_id: row.id,
  kind: row.kind,
  state: row.state,
  key: row.key,
  session_id: row.session,
  progress: { done: row.done, total: row.total },
  created_at: row.createdAt.toISOString(),
  finished_at: row.finishedAt?.toISOString() ?? null,
  ...(waitingFor !== undefined && { waiting_for: waitingFor }),
  outcome: row.outcome && presentOperationOutcome(row.id, row.outcome),
})
