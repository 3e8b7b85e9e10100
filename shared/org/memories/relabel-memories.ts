import { copyIdOf, idForPurpose } from '#shared/core/ids.ts'
import { findNewestWithTagSets } from '#shared/org/memories/shared-lists.mongo.ts'
import {
  ignoreMissing,
  mutateSharedMemory,
  noSuchSharedMemory,
  type SharedMemoryBackend,
} from '#shared/org/memories/shared-change.ts'
import { toSnapshot } from '#shared/org/memories/finalize-shared-writes.ts'
import { listTagSets } from '#shared/vault/base/tag-sets.postgres.ts'
import { relabelHistory } from '#shared/org/memories/shared-writes.postgres.ts'
import { findOrgAccount } from '#shared/org/base/orgs.postgres.ts'
import { changePolicy } from '#shared/org/base/policy-change.ts'
import { endFormerLabel, findTag } from '#shared/org/base/tags.postgres.ts'
import type { RelabelJob } from '#shared/domain/job-payloads.ts'
import type { NewJob } from '#shared/storage/queue/queue.ts'

const pageMax = 100

/** By then no turn, request or tag run that has read the former label is under way. */
const lastRunSeconds = 3_600

/**
 * Replaces the former label of a renamed tag, memory by memory, each with an audit event `retag`. Runs after the
 * renaming, and an hour later for what was being written meanwhile. Until that last run is done a role that allows
 * the tag allows the former label too. Where the tag got the label again meanwhile, the last run of that renaming
 * ends it. Safe to run any number of times.
 *
 * @throws Refusal `unavailable` when a store is out of reach; the next run goes on.
 */
export async function relabelMemories(
  backend: SharedMemoryBackend,
  job: RelabelJob,
  signal: AbortSignal,
): Promise<void> {
  const { query } = backend.postgres
  for (;;) {
    signal.throwIfAborted()
    const tag = await findTag(query, job.org, job.tag)
    // Without it the last run is done, or another tag has the label.
    if (!tag?.former.includes(job.from)) return
    const tagSets = (await listTagSets(query, job)).filter(({ tags }) => tags.includes(job.from))
    const tagged = await findNewestWithTagSets(backend.mongo, job, {
      tagSets: tagSets.map(({ tagSet }) => tagSet),
      max: pageMax,
    })
    let changed = 0
    for (const { id } of tagged) if (await relabelMemory(backend, job, id, tag.label)) changed++
    // Memories that an admin has given the former label again since this run began keep it.
    if (changed === 0) return job.last ? endLabel(backend, job) : sendLastRun(backend, job)
  }
}

async function sendLastRun(
  { postgres, queue }: SharedMemoryBackend,
  job: RelabelJob,
): Promise<void> {
  const operation = idForPurpose(job.operation, 'last run')
  const lastRun: NewJob<'org-relabel'> = {
    id: operation,
    data: { ...job, operation, last: true },
    priority: 0,
    afterSeconds: lastRunSeconds,
  }
  await postgres.transaction(tx => queue.send(tx, 'org-relabel', [lastRun]))
}

/** Takes the former label from the tag, and from everything that memories can be restored to. */
async function endLabel({ postgres }: SharedMemoryBackend, job: RelabelJob): Promise<void> {
  const { org, from } = job
  const account = await findOrgAccount(postgres.query, org)
  if (account === undefined) return
  await changePolicy({ postgres }, { admin: { account }, org }, async tx => {
    const to = await endFormerLabel(tx, job)
    if (to !== undefined) await relabelHistory(tx, org, { from, to })
  })
}

/** @returns whether the memory no longer has the former label. */
async function relabelMemory(
  backend: SharedMemoryBackend,
  job: RelabelJob,
  id: string,
  to: string,
): Promise<boolean> {
  const change = {
    operation: copyIdOf(job.operation, 0, id),
    actor: job.actor,
    id,
    kind: 'edit',
  } as const
  const memory = await mutateSharedMemory(backend, job, change, ({ memory: current }) => {
    if (!current) throw noSuchSharedMemory()
    const tags = current.tags.map(label => (label === job.from ? to : label))
    return { ...toSnapshot(current), tags }
  }).catch(ignoreMissing)
  return !memory?.tags.includes(job.from)
}
