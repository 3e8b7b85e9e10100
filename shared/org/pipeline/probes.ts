import type { JobName } from '#shared/domain/jobs.ts'
import { claimProbe } from '#shared/org/base/pipeline-state.postgres.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'

/** Probes that this process runs at once, by pass: of providers that hang, each takes minutes. */
const probesMax = 4
const running = new Map<JobName, number>()

/**
 * Claims the probe of an organization whose provider could not be used, for one pass of one process.
 *
 * @returns false when it is not due, or this process runs its share of probes; else the caller has to call
 *   `endProbe`.
 */
export async function startProbe(query: Query, name: JobName, org: string): Promise<boolean> {
  const count = running.get(name) ?? 0
  if (count >= probesMax) return false
  running.set(name, count + 1)
  let isClaimed = false
  try {
    isClaimed = await claimProbe(query, org)
    return isClaimed
  } finally {
    if (!isClaimed) endProbe(name)
  }
}

export const endProbe = (name: JobName): void => void running.set(name, running.get(name)! - 1)
