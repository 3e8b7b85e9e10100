import { Refusal } from '#shared/core/errors.ts'
import { purposeIdOf } from '#shared/core/ids.ts'
import { sharedByIds, type SharedMemory } from '#shared/org/shared-memories.mongo.ts'
import { changeShared, writeIdOf, type By, type Changing } from '#shared/org/shared-change.ts'
import { deleteShared } from '#shared/org/shared-memory.ts'
import { snapshotOf } from '#shared/org/shared-settle.ts'
import { revisionsOf, type Revision } from '#shared/org/audit.postgres.ts'
import { replacedBy } from '#shared/org/trail.postgres.ts'
import type { OrgVault } from '#shared/domain/job-payloads.ts'

/** A memory that waits for a person, as it was read. */
type Waiting = Pick<SharedMemory, 'id' | 'version'>

/**
 * What memories that wait would replace once they are approved, by the ids of those that wait: nothing
 * for the others, and where what would be replaced is gone, or the trail that knows of it.
 *
 * @throws Refusal `unavailable` when a store is out of reach.
 */
export async function replacementsOf(
  { postgres, mongo }: Pick<Changing, 'postgres' | 'mongo'>,
  place: OrgVault,
  waiting: readonly Pick<SharedMemory, 'id'>[],
): Promise<Map<string, SharedMemory>> {
  const asked = waiting.map(({ id }) => id)
  const replaced = await replacedBy(postgres.query, place.org, asked)
  if (replaced.size === 0) return new Map()
  const rows = await sharedByIds(mongo, place, [...new Set(replaced.values())])
  const byId = new Map(rows.map(row => [row.id, row]))
  return new Map(
    [...replaced].flatMap(([id, other]) => {
      const row = byId.get(other)
      return row ? [[id, row]] : []
    }),
  )
}

/**
 * Removes what a memory replaces, once for each time that it waits: two who approve it at the same time,
 * and one who does it again after a failure, remove it once.
 *
 * @returns the id of what is replaced; undefined where there is none, or it had been removed before.
 * @throws Refusal as `deleteShared`, but for `missing`.
 */
export async function takeReplaced(
  backend: Changing,
  place: OrgVault,
  { waiting, actor }: { waiting: Waiting; actor: string },
): Promise<string | undefined> {
  const id = await replacedOf(backend, place, waiting)
  if (id === undefined) return undefined
  try {
    await deleteShared(backend, place, { operation: removalOf(waiting), actor, id })
    return id
  } catch (error) {
    if (error instanceof Refusal && error.reason === 'missing') return undefined
    throw error
  }
}

/**
 * Brings back what an approval had removed that did not come about: somebody else decided otherwise, or
 * the same person did after a failure. Leaves alone what has been decided about since.
 *
 * @throws Refusal as `restoreShared`, but for `missing`.
 */
export async function leaveReplaced(
  backend: Changing,
  place: OrgVault,
  { waiting, ...by }: By & { waiting: Waiting },
): Promise<void> {
  const id = await replacedOf(backend, place, waiting)
  if (id === undefined) return
  const removal = writeIdOf({ operation: removalOf(waiting), id })
  await bringBack(backend, place, { ...by, id }, revision => revision.id === removal)
}

/**
 * Makes a removed memory what it was, if its latest change is the removal that is meant.
 *
 * @throws Refusal as `restoreShared`, but for `missing`.
 */
export async function bringBack(
  backend: Changing,
  place: OrgVault,
  change: By & { id: string },
  isMeant: (removal: Revision) => boolean,
): Promise<void> {
  const { query } = backend.postgres
  const [latest] = await revisionsOf(query, place.org, change.id)
  if (!latest?.before || latest.after || !isMeant(latest)) return
  await changeShared(backend, place, { ...change, kind: 'restore' }, ({ memory }) =>
    memory ? snapshotOf(memory) : latest.before,
  )
}

const replacedOf = async (
  { postgres }: Pick<Changing, 'postgres'>,
  { org }: OrgVault,
  { id }: Waiting,
): Promise<string | undefined> => (await replacedBy(postgres.query, org, [id])).get(id)

/** Of each time that it waits another one. */
const removalOf = ({ id, version }: Waiting): string => purposeIdOf(id, `replaces at ${version}`)
