import { acceptTurns, type ExtractionInput } from '#shared/vault/ingest/turn-extraction.ts'
import type { Postgres, Transaction } from '#shared/storage/postgres/connect.ts'
import { groupCommit } from '#shared/storage/postgres/group-commit.ts'
import {
  closeOpenExchanges,
  type CloseOutcome,
} from '#shared/vault/ingest/open-exchanges.postgres.ts'
import {
  acceptOperations,
  lockForAcceptance,
  type NewWork,
} from '#shared/operations/accept-operations.ts'
import type { AcceptedOperation, NewOperation } from '#shared/operations/operations.postgres.ts'
import type { JsonBytes } from '#shared/core/json-bytes.ts'
import type { Memory } from '#shared/domain/memory.ts'
import type { IngestJob } from '#shared/domain/job-payloads.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'

/** An exchange to store: its operation, and what its job carries beside the operation's own fields. */
type NewExchange = {
  operation: NewOperation
  payload: Pick<IngestJob, 'model' | 'retentionDays'> & { memories: Memory[] | JsonBytes }
  /** The exchange was opened under the same operation; it is accepted only when that is still open. */
  closesExchange: boolean
  /** A turn whose tool loop it ends. */
  answeredTurn?: Buffer | undefined
  /** Text of a member's exchange that may add something to the memory of their organization. */
  extractionInput?: ExtractionInput | undefined
}

export type AcceptIngest = (exchange: NewExchange) => Promise<{
  /** Of one that closes an open exchange; only an `open` one was accepted. */
  closeOutcome: CloseOutcome | undefined
}>

/**
 * Accepts exchanges: operation, bill and job in one transaction, under one id. When this resolves the
 * exchange will be stored, whatever process dies; when it rejects nothing was written. An exchange whose
 * operation existed before is not accepted again.
 *
 * Requests that arrive together share a transaction (see `groupCommit`).
 *
 * @param gatherSeconds how long a member's exchange waits for others before it is extracted
 */
export function createAcceptIngest(
  postgres: Postgres,
  queue: Queue,
  gatherSeconds: number,
): AcceptIngest {
  return groupCommit(
    postgres,
    async (tx, exchanges: NewExchange[]) => {
      const outcomes = await lockAndClose(tx, exchanges)
      const outcomeOf = ({ closesExchange, operation }: NewExchange): CloseOutcome | undefined =>
        closesExchange ? outcomes.get(operation.id) : undefined
      const due = exchanges.filter(
        exchange => !exchange.closesExchange || outcomeOf(exchange) === 'open',
      )
      const accepted = await acceptOperations(tx, queue, due.map(toWork), {
        areLocked: outcomes.size > 0,
      })
      await acceptExtractionInputs(tx, queue, { exchanges: due, accepted, gatherSeconds })
      return exchanges.map(exchange => ({ closeOutcome: outcomeOf(exchange) }))
    },
    { concurrency: 2, batchMax: 100 },
  )
}

/** Closes the open ones of the exchanges, with the locks of all; without such, nothing is locked yet. */
async function lockAndClose(
  tx: Transaction,
  exchanges: readonly NewExchange[],
): Promise<Map<string, CloseOutcome>> {
  const closing = exchanges.filter(({ closesExchange }) => closesExchange)
  if (closing.length === 0) return new Map()
  const locked = lockForAcceptance(
    tx,
    exchanges.map(({ operation }) => operation),
  )
  const closed = closeOpenExchanges(
    tx,
    closing.map(({ operation }) => operation.id),
    closing.flatMap(({ operation: { vault }, answeredTurn: turn }) =>
      turn ? [{ vault, turn }] : [],
    ),
  )
  const [, outcomes] = await Promise.all([locked, closed])
  return outcomes
}

const toWork = ({ operation, payload }: NewExchange): NewWork<'ingest'> => ({
  operation,
  queueName: 'ingest',
  jobs({ epoch, sessionEpoch }) {
    const { id, vault, session } = operation
    return [{ id, data: { operation: id, vault, epoch, session, sessionEpoch, ...payload } }]
  },
})

/** Sends the text of members to extraction for their organizations, in the same transaction. */
async function acceptExtractionInputs(
  tx: Transaction,
  queue: Queue,
  {
    exchanges,
    accepted,
    gatherSeconds,
  }: {
    exchanges: readonly NewExchange[]
    accepted: readonly AcceptedOperation[]
    gatherSeconds: number
  },
): Promise<void> {
  const inputs = exchanges.flatMap(({ operation, extractionInput }, index) => {
    const { epoch, sessionEpoch, fresh } = accepted[index]!
    if (!extractionInput || !fresh) return []
    const { id: turn, vault, keyHash } = operation
    return [{ ...extractionInput, turn, vault, keyHash, epoch, sessionEpoch }]
  })
  if (inputs.length > 0) await acceptTurns(tx, queue, inputs, gatherSeconds)
}
