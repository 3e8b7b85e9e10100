import { acceptTurns, type ExtractionInput } from '#shared/vault/ingest/turn-extraction.ts'
import type { Postgres, Transaction } from '#shared/storage/postgres/connect.ts'
import { groupCommit } from '#shared/storage/postgres/group-commit.ts'
import {
  closeOpenExchanges,
  type CloseOutcome,
} from '#shared/vault/ingest/open-exchanges.postgres.ts'
import {
  insertOperations,
  type AcceptedOperation,
  type NewOperation,
} from '#shared/operations/operations.postgres.ts'
import { jobNames, type JobName, type JobPayloads } from '#shared/domain/jobs.ts'
import type { NewJob, Queue } from '#shared/storage/queue/queue.ts'

/** A piece of work to promise: its operation and bill, and the jobs that will do it. */
type WorkRequest<Name extends JobName = JobName> = {
  operation: NewOperation
  name: Name
  /** Fulfils the open exchange of its operation, and is promised only when that is still open. */
  closesExchange?: boolean
  /** Words of a member's exchange that may add something to the memory of their organization. */
  extractionInput?: ExtractionInput
  /** The jobs, once it is known what the vault was at the moment of acceptance. */
  jobs: (accepted: AcceptedOperation) => WorkJob<Name>[]
}

type WorkJob<Name extends JobName> = {
  /** A UUIDv7; the operation's own where one job does it all. */
  id: string
  data: JobPayloads[Name]
  /** What the queue's policy counts by. */
  key?: string
}

export type AcceptWork = (work: WorkRequest) => Promise<AcceptResult>

/** What the vault was; or how an exchange stood that was no longer open, and so nothing was promised. */
type AcceptResult = AcceptedOperation & { closeOutcome?: CloseOutcome }

/**
 * Promises work: operation, bill and job in one transaction, under one id. When this resolves the
 * work will be done, whatever dies; when it rejects nothing was written. Work whose operation exists
 * already is not promised again.
 *
 * Requests that arrive together share a transaction (see `groupCommit`).
 */
export function createAcceptWork(postgres: Postgres, queue: Queue): AcceptWork {
  return groupCommit<WorkRequest, AcceptResult>(
    postgres,
    async (tx, works) => {
      const closings = await closeExchanges(tx, works)
      const due = works.filter(
        work => !work.closesExchange || closings.get(work.operation.id) === 'open',
      )
      const accepted =
        due.length > 0
          ? await insertOperations(
              tx,
              due.map(({ operation }) => operation),
            )
          : []
      for (const name of jobNames) {
        const jobs = due.flatMap((work, index) =>
          work.name === name ? newJobsOf(work, accepted[index]!) : [],
        )
        if (jobs.length > 0) await queue.send(tx, name, jobs)
      }
      await acceptExtractionInputs(tx, queue, due, accepted)
      return works.map(work => {
        const closing = work.closesExchange ? closings.get(work.operation.id) : undefined
        return { ...(accepted[due.indexOf(work)] ?? notAccepted), ...(closing && { closing }) }
      })
    },
    { lanes: 2, itemsMax: 100 },
  )
}

/** For work that was not promised. */
const notAccepted: AcceptedOperation = { epoch: 0, sessionEpoch: 0, pending: 0, fresh: false }

async function closeExchanges(
  tx: Transaction,
  works: readonly WorkRequest[],
): Promise<Map<string, CloseOutcome>> {
  const closing = works
    .filter(({ closesExchange }) => closesExchange)
    .map(({ operation }) => operation.id)
  if (closing.length === 0) return new Map()
  return closeOpenExchanges(tx, closing, [
    ...new Set(works.map(({ operation }) => operation.vault)),
  ])
}

/** What members said goes to their organizations with the same commit. */
async function acceptExtractionInputs(
  tx: Transaction,
  queue: Queue,
  works: readonly WorkRequest[],
  accepted: readonly AcceptedOperation[],
): Promise<void> {
  const exchanges = works.flatMap(({ operation, extractionInput }, index) => {
    const { epoch, sessionEpoch, fresh } = accepted[index]!
    if (!extractionInput || !fresh) return []
    const { id: turn, vault, keyHash } = operation
    return [{ ...extractionInput, turn, vault, keyHash, epoch, sessionEpoch }]
  })
  if (exchanges.length > 0) await acceptTurns(tx, queue, exchanges)
}

function newJobsOf(work: WorkRequest, accepted: AcceptedOperation): NewJob<JobName>[] {
  // Its vault may have been cleared since it was promised: done anew, it would bring back what went.
  if (!accepted.fresh) return []
  return work.jobs(accepted).map(job => ({ ...job, priority: -accepted.pending }))
}
