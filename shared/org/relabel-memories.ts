import { Refusal } from '#shared/core/errors.ts'
import { copyIdOf } from '#shared/core/ids.ts'
import { findNewestWithTagSets } from '#shared/org/shared-lists.mongo.ts'
import {
  mutateSharedMemory,
  noSuchSharedMemory,
  type SharedMemoryBackend,
} from '#shared/org/shared-change.ts'
import { toSnapshot } from '#shared/org/finalize-shared-writes.ts'
import { listTagSets } from '#shared/vault/base/tag-sets.postgres.ts'
import { findTag } from '#shared/org/tags.postgres.ts'
import type { RelabelJob } from '#shared/domain/job-payloads.ts'

const pageMax = 100

/**
 * Replaces the former label of a renamed tag by the current one, memory by memory, each with an audit
 * event `retag`. Until it is done a role that allows the tag allows the former label too. Safe to run any
 * number of times.
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
    if (!tag || tag.label === job.from) return
    const tagSets = (await listTagSets(query, job)).filter(({ tags }) => tags.includes(job.from))
    const tagged = await findNewestWithTagSets(backend.mongo, job, {
      tagSets: tagSets.map(({ tagSet }) => tagSet),
      max: pageMax,
    })
    let changed = 0
    for (const { id } of tagged) if (await relabelMemory(backend, job, id, tag.label)) changed++
    // Memories that an admin has given the former label again keep it.
    if (changed === 0) return
  }
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
  try {
    const memory = await mutateSharedMemory(backend, job, change, ({ memory }) => {
      if (!memory) throw noSuchSharedMemory()
      const tags = memory.tags.map(label => (label === job.from ? to : label))
      return { ...toSnapshot(memory), tags }
    })
    return !memory?.tags.includes(job.from)
  } catch (error) {
    if (error instanceof Refusal && error.reason === 'missing') return true
    throw error
  }
}
