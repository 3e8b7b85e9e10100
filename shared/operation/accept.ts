import { groupCommit } from '#shared/postgres/group-commit.ts'
import { insertOperations, type Accepted, type NewOperation } from '#shared/postgres/operations.ts'
import type { Postgres } from '#shared/postgres/connect.ts'
import { jobNames, type JobName, type Payloads } from '#shared/queue/jobs.ts'
import type { Promised, Queue } from '#shared/queue/queue.ts'

/** A piece of work to promise: its operation and bill, and the jobs that will do it. */
type Work<Name extends JobName = JobName> = {
  operation: NewOperation
  name: Name
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

export type Accept = (work: Work) => Promise<Accepted>

/**
 * Promises work: operation, bill and job in one transaction, under one id. When this resolves the
 * work will be done, whatever dies; when it rejects nothing was written.
 *
 * Requests that arrive together share a transaction (see `groupCommit`).
 */
export function createAccept(postgres: Postgres, queue: Queue): Accept {
  return groupCommit<Work, Accepted>(
    postgres,
    async (tx, works) => {
      const accepted = await insertOperations(
        tx,
        works.map(({ operation }) => operation),
      )
      for (const name of jobNames) {
        const jobs = works.flatMap((work, index) =>
          work.name === name ? promisedOf(work, accepted[index]!) : [],
        )
        if (jobs.length > 0) await queue.send(tx, name, jobs)
      }
      return accepted
    },
    { lanes: 2, itemsMax: 100 },
  )
}

function promisedOf(work: Work, accepted: Accepted): Promised<JobName>[] {
  return work.jobs(accepted).map(job => ({ ...job, priority: -accepted.pending }))
}
