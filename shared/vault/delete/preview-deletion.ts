import type { Caller } from '#shared/access/caller.ts'
import type { Stores } from '#shared/storage/stores.ts'
import { findSessionEpochs } from '#shared/vault/base/vault-state.postgres.ts'
import { sum } from '#shared/vault/delete/deletion-debt.ts'
import {
  findConsolidatedOnlyBy,
  findDeletable,
  findReflectionsIn,
  type DeletableMemory,
} from '#shared/vault/delete/deletion-preview.mongo.ts'

/** What a deletion would do. */
export type DeletionPreview = {
  /** Different ids that were asked for. */
  requested: number
  /** Those of them that would be deleted, in the order they were asked for. */
  ids: string[]
  tokens: number
  /** Memories that would be unconsolidated again: no reflection of their batches would be left. */
  sourcesReleased: number
  /** Reflections that would stay, over some of the deleted memories. */
  reflectionsLeft: number
}

/** Sources in one command: the engine re-reads its buffer for every chunk of a long message. */
const idsMax = 2_000

/**
 * What `acceptAndDelete` would do with these ids now. Nothing is written.
 *
 * @throws Refusal `unavailable` when a store is out of reach.
 */
export async function previewDeletion(
  stores: Stores,
  { scope }: Pick<Caller, 'scope'>,
  ids: readonly string[],
): Promise<DeletionPreview> {
  const requested = [...new Set(ids.map(id => id.toLowerCase()))]
  const found = await findVisible(stores, scope, requested)
  const deleted = new Set(found.map(({ id }) => id))
  return {
    requested: requested.length,
    ids: requested.filter(id => deleted.has(id)),
    tokens: sum(found, ({ tokens }) => tokens),
    ...(await lineageAfter(stores, scope, found, deleted)),
  }
}

/** Live memories of the vault and of its sessions, without those of cleared sessions. */
async function findVisible(
  { postgres, mongo }: Stores,
  scope: Caller['scope'],
  ids: readonly string[],
): Promise<DeletableMemory[]> {
  const live = await findDeletable(mongo, scope, ids)
  const sessions = new Set(live.flatMap(({ session }) => session ?? []))
  const epochs = await findSessionEpochs(postgres.query, scope, [...sessions])
  return live.filter(
    ({ session, sessionEpoch }) => sessionEpoch === (epochs.get(session ?? '') ?? 0),
  )
}

async function lineageAfter(
  { mongo }: Stores,
  scope: Caller['scope'],
  found: readonly DeletableMemory[],
  deleted: ReadonlySet<string>,
): Promise<Pick<DeletionPreview, 'sourcesReleased' | 'reflectionsLeft'>> {
  const covering = new Set(found.flatMap(({ consolidatedBy }) => consolidatedBy))
  const touched = new Set(found.flatMap(({ batch }) => batch ?? []))
  const reflections = await findReflectionsIn(mongo, scope, [...covering.union(touched)])
  const left = reflections.filter(({ id }) => !deleted.has(id))
  const ended = touched.difference(new Set(left.map(({ batch }) => batch)))
  const sources = new Set(
    found.flatMap(({ batch, sources }) => (batch !== null && ended.has(batch) ? sources : [])),
  )
  const kept = [...sources.difference(deleted)]
  let sourcesReleased = 0
  for (let start = 0; start < kept.length; start += idsMax) {
    const part = kept.slice(start, start + idsMax)
    sourcesReleased += (await findConsolidatedOnlyBy(mongo, scope, part, [...ended])).length
  }
  return {
    sourcesReleased,
    reflectionsLeft: left.filter(({ batch }) => covering.has(batch)).length,
  }
}
