import { promiseTurns, type Said } from '#shared/vault/ingest/member-turn.ts'
import type { Postgres, Transaction } from '#shared/storage/postgres/connect.ts'
import { groupCommit } from '#shared/storage/postgres/group-commit.ts'
import { closeOpen, type Closing } from '#shared/vault/ingest/open-exchanges.postgres.ts'
import {
  insertOperations,
  type Accepted,
  type NewOperation,
} from '#shared/operations/operations.postgres.ts'
import { jobNames, type JobName, type Payloads } from '#shared/domain/jobs.ts'
import type { Promised, Queue } from '#shared/storage/queue/queue.ts'

/** A piece of work to promise: its operation and bill, and the jobs that will do it. */
type Work<Name extends JobName = JobName> = {
  operation: NewOperation
  name: Name
  /** Fulfils the open exchange of its operation, and is promised only when that is still open. */
  closes?: boolean
  /** Words of a member's exchange that may add something to the memory of their organization. */
  said?: Said
  /** The jobs, once it is known what the vault was at the moment of acceptance. */
  jobs: (accepted: Accepted) => WorkJob<Name>[]
}

type WorkJob<Name extends JobName> = {
  /** A UUIDv7; the operation's own where one job does it all. */
  id: string
  data: Payloads[Name]
  /** What the queue's policy counts by. */
  key?: string
}

export type Accept = (work: Work) => Promise<Taken>

/** What the vault was; or how an exchange stood that was no longer open, and so nothing was promised. */
type Taken = Accepted & { closing?: Closing }

/**
 * Promises work: operation, bill and job in one transaction, under one id. When this resolves the
 * work will be done, whatever dies; when it rejects nothing was written. Work whose operation exists
 * already is not promised again.
 *
 * Requests that arrive together share a transaction (see `groupCommit`).
 */
export function createAccept(postgres: Postgres, queue: Queue): Accept {
  return groupCommit<Work, Taken>(
    postgres,
    async (tx, works) => {
      const closings = await closeAll(tx, works)
      const due = works.filter(work => !work.closes || closings.get(work.operation.id) === 'open')
      const accepted =
        due.length > 0
          ? await insertOperations(
              tx,
              due.map(({ operation }) => operation),
            )
          : []
      for (const name of jobNames) {
        const jobs = due.flatMap((work, index) =>
          work.name === name ? promisedOf(work, accepted[index]!) : [],
        )
        if (jobs.length > 0) await queue.send(tx, name, jobs)
      }
      await promiseSaid(tx, queue, due, accepted)
      return works.map(work => {
        const closing = work.closes ? closings.get(work.operation.id) : undefined
        return { ...(accepted[due.indexOf(work)] ?? nothing), ...(closing && { closing }) }
      })
    },
    { lanes: 2, itemsMax: 100 },
  )
}

/** For work that was not promised. */
const nothing: Accepted = { epoch: 0, sessionEpoch: 0, pending: 0, fresh: false }

async function closeAll(tx: Transaction, works: readonly Work[]): Promise<Map<string, Closing>> {
  const closing = works.filter(({ closes }) => closes).map(({ operation }) => operation.id)
  if (closing.length === 0) return new Map()
  return closeOpen(tx, closing, [...new Set(works.map(({ operation }) => operation.vault))])
}

/** What members said goes to their organizations with the same commit. */
async function promiseSaid(
  tx: Transaction,
  queue: Queue,
  works: readonly Work[],
  accepted: readonly Accepted[],
): Promise<void> {
  const exchanges = works.flatMap(({ operation, said }, index) => {
    const { epoch, sessionEpoch, fresh } = accepted[index]!
    if (!said || !fresh) return []
    const { id: turn, vault, keyHash } = operation
    return [{ ...said, turn, vault, keyHash, epoch, sessionEpoch }]
  })
  if (exchanges.length > 0) await promiseTurns(tx, queue, exchanges)
}

function promisedOf(work: Work, accepted: Accepted): Promised<JobName>[] {
  // Its vault may have been cleared since it was promised: done anew, it would bring back what went.
  if (!accepted.fresh) return []
  return work.jobs(accepted).map(job => ({ ...job, priority: -accepted.pending }))
}
