import { Refusal } from '#shared/core/errors.ts'
import type { OrgVault } from '#shared/domain/job-payloads.ts'
import { forgetMemory } from '#shared/org/memories/memory-texts.postgres.ts'
import { readHistory } from '#shared/org/memories/restore-shared-memory.ts'
import type { ChangeOrigin, SharedMemoryBackend } from '#shared/org/memories/shared-change.ts'
import { deleteSharedMemory } from '#shared/org/memories/write-shared-memories.ts'

/**
 * Removes a shared memory with its words: it cannot be restored. Of one that was removed before the words
 * go. Cut short between the two, it is removed, and the same request again ends it.
 *
 * @throws Refusal as `deleteSharedMemory`; `missing` also when no words are left.
 */
export async function deleteSharedMemoryForGood(
  backend: SharedMemoryBackend,
  orgVault: OrgVault,
  removal: ChangeOrigin & { id: string },
): Promise<void> {
  const { org } = orgVault
  try {
    await deleteSharedMemory(backend, orgVault, removal)
  } catch (error) {
    if (!(error instanceof Refusal && error.reason === 'missing')) throw error
    await readHistory(backend, orgVault, removal.id)
  }
  await backend.postgres.transaction(tx => forgetMemory(tx, org, removal.id))
}
