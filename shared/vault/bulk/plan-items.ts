import { debtOf } from '#shared/vault/base/debt-of-memories.ts'
import type { PlannedMemory, UploadedLine } from '#shared/domain/file-types.ts'
import type { VaultEpoch } from '#shared/domain/memory.ts'
import {
  findStoredStates,
  type RestoredMemory,
  type StoredState,
} from '#shared/vault/bulk/memories.mongo.ts'
import { findSessionEpochs } from '#shared/vault/base/vaults.postgres.ts'
import type { Stores } from '#shared/storage/stores.ts'
import { createHash } from 'node:crypto'

/** The ids a memory may get, in the order they are tried. */
export type IdCandidates = {
  idAt(generation: number): string
  /** From this generation on ids depend on the vault: one that has no document here is free. */
  vaultOwnedFrom: 0 | 1
  /** The vault or an earlier line has the same memory already, under any id. */
  alreadyPresent: boolean
}

/** The memory of a line, without its id. */
export type BulkItem = IdCandidates & {
  memory: Omit<RestoredMemory, 'id' | 'vector'>
  vector?: Float32Array
  /** What its text is to be told of: until then it has none. */
  picture?: UploadedLine['picture']
}

type PlanBackend = Stores

/** Plans each item: an existing memory is skipped or replaced. Ids of deleted memories are not used again. */
export async function planItems(
  backend: PlanBackend,
  scope: VaultEpoch,
  items: readonly IdCandidates[],
  { replaces }: { replaces: boolean },
): Promise<PlannedMemory[]> {
  const plan = items.map(({ alreadyPresent, idAt }): PlannedMemory | null =>
    alreadyPresent ? { id: idAt(0), as: 'skip' } : null,
  )
  /** Free in this vault, but possibly taken in another one; tried first. */
  const possiblyForeignIds = new Map<number, string>()
  for (let generation = 0; plan.includes(null); generation++) {
    const open = items.flatMap(({ idAt, vaultOwnedFrom }, index) =>
      plan[index] === null
        ? [{ index, id: idAt(generation), own: generation >= vaultOwnedFrom }]
        : [],
    )
    const states = await readStoredStates(backend, scope, idsOf(open))
    for (const { index, id, own } of open) {
      const state = states.get(id)
      if (state?.isLive) plan[index] = planForExisting(id, state, replaces)
      else if (!state && own) plan[index] = planForNew(id, possiblyForeignIds.get(index))
      else if (!state) possiblyForeignIds.set(index, id)
    }
  }
  return plan.filter(planned => planned !== null)
}

/** The id that each of these imported memories has in the vault now; missing ones are left out. */
export async function findLiveIds(
  backend: PlanBackend,
  scope: VaultEpoch,
  ids: readonly string[],
  idAt: (id: string, generation: number) => string,
): Promise<Map<string, string>> {
  const liveIds = new Map<string, string>()
  let open = [...new Set(ids)]
  for (let generation = 0; open.length > 0; generation++) {
    const tried = open.map(id => ({ requestedId: id, id: idAt(id, generation) }))
    const states = await readStoredStates(backend, scope, idsOf(tried))
    open = []
    for (const { requestedId, id } of tried) {
      const state = states.get(id)
      if (state?.isLive) liveIds.set(requestedId, id)
      // A deleted memory, or one whose first id another vault has, may exist under a later id.
      else if (state || generation === 0) open.push(requestedId)
    }
  }
  return liveIds
}

/** The documents of these ids; a memory of a session that was cleared since is not live. */
export async function readStoredStates(
  { mongo, postgres }: PlanBackend,
  scope: VaultEpoch,
  ids: readonly string[],
): Promise<Map<string, StoredState>> {
  const states = await findStoredStates(mongo, scope, ids)
  const sessions = [...new Set([...states.values()].map(({ session }) => session))].filter(Boolean)
  const epochs = await findSessionEpochs(postgres.query, scope, sessions)
  for (const state of states.values()) {
    const epoch = epochs.get(state.session) ?? 0
    if (state.session_epoch !== epoch) state.isLive = false
  }
  return states
}

function planForExisting(id: string, state: StoredState, replaces: boolean): PlannedMemory {
  if (!replaces) return { id, as: 'skip' }
  const session = state.session || null
  return { id, as: 'replace', was: { session, debt: debtOf([{ ...state, session }]) } }
}

const planForNew = (id: string, firstChoice: string | undefined): PlannedMemory =>
  firstChoice === undefined ? { id, as: 'new' } : { id: firstChoice, as: 'new', next: id }

export const idsOf = (rows: readonly { id: string }[]): string[] => rows.map(({ id }) => id)

/** An item with its plan. */
export type PlannedItem = BulkItem & { planned: PlannedMemory }

/** Lines with the same identity become the same memories. */
export type LineIdentity = {
  vault: string
  epoch: number
  session: string | null
  sessionEpoch: number
  contentHash: Uint8Array
  /** Epoch milliseconds; null for a line without a time. */
  timestamp: number | null
  /** The document that it is a piece of, and its text with its place there. */
  piece?: readonly string[]
}

/**
 * The id of a chunk of an uploaded line: the same when the line is sent again. Begins with the event time (0
 * before 1970) and the number of the chunk, so that ids sort in the order of the text.
 *
 * @param generation raised while the id belongs to a deleted memory
 */
export function lineMemoryId(
  identity: LineIdentity,
  textChunkIndex: number,
  generation: number,
): string {
  const { vault, epoch, session, sessionEpoch, contentHash, timestamp, piece = [] } = identity
  const line = createHash('sha256')
    .update(JSON.stringify([vault, epoch, session, sessionEpoch, timestamp, ...piece]))
    .update(contentHash)
    .digest()
  const bytes = Buffer.from(line.subarray(0, 16))
  if (timestamp !== null) bytes.writeUIntBE(Math.max(0, Math.min(timestamp, 2 ** 48 - 1)), 0, 6)
  bytes[6] = 0x70 | ((textChunkIndex >>> 20) & 0x0f)
  bytes[7] = (textChunkIndex >>> 12) & 0xff
  bytes[8] = 0x80 | ((textChunkIndex >>> 6) & 0x3f)
  bytes[9] = ((textChunkIndex & 0x3f) << 2) | (bytes[9]! & 0x03)
  return formatUuidWithTail(
    bytes,
    createHash('sha256').update(line).update(`${textChunkIndex}:${generation}`).digest(),
  )
}

/**
 * The id of an imported memory: its own in generation 0, else one that depends on vault, epoch, id and
 * generation alone. The first 78 bits stay, so that the ids sort like the original ones.
 */
export function importedMemoryId(
  { vault, epoch }: { vault: string; epoch: number },
  id: string,
  generation: number,
): string {
  if (generation === 0) return id.toLowerCase()
  const bytes = Buffer.from(id.replaceAll('-', ''), 'hex')
  const tail = createHash('sha256').update(bytes).update(`${vault}:${epoch}:${generation}`).digest()
  return formatUuidWithTail(bytes, tail)
}

/** Sets the last 50 bits. */
function formatUuidWithTail(bytes: Buffer, tail: Uint8Array): string {
  bytes[9] = (bytes[9]! & 0xfc) | (tail[0]! & 0x03)
  bytes.set(tail.subarray(1, 7), 10)
  const hex = bytes.toString('hex')
  return [8, 12, 16, 20, 32]
    .map((end, index, ends) => hex.slice(ends[index - 1] ?? 0, end))
    .join('-')
}
