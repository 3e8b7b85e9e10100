import type { OperationOutcome } from '#shared/domain/operation-outcome.ts'
import type { Reembedding } from '#shared/vault/reembed/reembeddings.postgres.ts'

/** Why a re-embedding is to end before it has embedded everything; undefined when nothing is in its way. */
export function obstacleTo(reembedding: Reembedding): OperationOutcome | undefined {
  if (reembedding.epoch !== reembedding.currentEpoch) return clearedOutcome
  return reembedding.isSuperseded ? supersededOutcome : undefined
}

const clearedOutcome: OperationOutcome = {
  kind: 'failed',
  reason: 'conflict',
  error: 'The vault was cleared meanwhile',
  hint: 'What is stored now may be re-embedded',
}

const supersededOutcome: OperationOutcome = {
  kind: 'failed',
  reason: 'conflict',
  error: 'Another re-embedding has moved the vault since',
  hint: 'Send the request again to move it to this model',
}
