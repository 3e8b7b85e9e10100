import { Binary } from 'mongodb'
import type { Expiry } from '#shared/domain/expiry.ts'
import type { Tier, VaultScope } from '#shared/domain/memory.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import { toBinaryVector, type MemoryDocument } from '#shared/storage/mongo/documents.ts'
import { contentHashIndex, idIndex } from '#shared/storage/mongo/indexes.ts'
import {
  aggregateDocuments,
  acknowledged,
  findDocument,
  epochFilter,
} from '#shared/storage/mongo/commands.ts'

/** What an edit needs to know of a memory. */
export type EditableMemory = {
  id: string
  tier: Tier
  /** Epoch milliseconds. */
  at: number
  importance: number | undefined
  tokens: number
  /** `contentHash` of its text. */
  hash: Uint8Array
  session: string | null
  sessionEpoch: number
  consolidated: boolean
  feedback: MemoryDocument['feedback']
  version: number
  /** The vault spaces it has a vector in. */
  spaces: string[]
  storedAt: number
  expiresAt: number | undefined
  /** The last edit; `before`: the tokens the debt counted until then; `at` in epoch milliseconds. */
  edited: { operation: string; at: number; before: number } | null
}

export type TextReplacement = {
  operation: string
  text: string
  hash: Buffer
  tokens: number
  /** Its new expiry; left out where it does not change. */
  expiry?: Expiry
  /** The tokens the debt counts the memory for until this edit is finalized. */
  debtTokensBefore: number
  vectors: ReadonlyMap<string, Float32Array>
}

/** A memory of this epoch of the vault, in its core or in any session; undefined when there is none. */
export async function findEditableMemory(
  { memories }: Pick<Mongo, 'memories'>,
  scope: Pick<VaultScope, 'vault' | 'epoch'>,
  id: string,
): Promise<EditableMemory | undefined> {
  const document = await findDocument(
    memories,
    { _id: { $eq: id }, ...epochFilter(scope) },
    { projection: { text: 0, sources: 0 }, hint: idIndex },
  )
  return document ? editableFromDocument(document) : undefined
}

/** The partitions (session null: the core) that hold another memory of this content; some may have been cleared. */
export async function memoriesWithSameText(
  { memories }: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  { hash, except }: { hash: Buffer; except: string },
): Promise<{ session: string | null; sessionEpoch: number }[]> {
  const rows = await aggregateDocuments<{ _id: { session: string; epoch: number } }>(
    memories,
    [
      {
        $match: { ...epochFilter(scope), hash: { $eq: new Binary(hash) }, _id: { $ne: except } },
      },
      { $group: { _id: { session: '$session', epoch: '$session_epoch' } } },
    ],
    { hint: contentHashIndex },
  )
  return rows.map(({ _id: { session, epoch } }) => ({
    session: session || null,
    sessionEpoch: epoch,
  }))
}

/**
 * Gives a memory another text and its vectors in one journaled write; vectors not given are removed.
 *
 * @returns false, with nothing written, when the memory was changed since it was read.
 */
export async function replaceText(
  { memories }: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  { id, version, consolidated }: EditableMemory,
  { operation, text, hash, tokens, debtTokensBefore, vectors, expiry }: TextReplacement,
): Promise<boolean> {
  const spaces = [...vectors].map(([space, vector]) => [space, toBinaryVector(vector)])
  const unsetFields = {
    ...(expiry && expiry.expiresAt === undefined && { expires_at: '' as const }),
    ...(expiry && expiry.expiresAsked === undefined && { expires_asked: '' as const }),
  }
  const update = memories.updateOne(
    {
      _id: { $eq: id },
      ...epochFilter(scope),
      version: { $eq: version },
      consolidated: { $eq: consolidated },
    },
    {
      $set: {
        text,
        hash: new Binary(hash),
        tokens,
        vectors: Object.fromEntries(spaces) as Record<string, Binary>,
        edited: { operation, at: new Date(), before: debtTokensBefore },
        ...(expiry?.expiresAt !== undefined && { expires_at: new Date(expiry.expiresAt) }),
        ...(expiry?.expiresAsked !== undefined && { expires_asked: new Date(expiry.expiresAsked) }),
      },
      ...(Object.keys(unsetFields).length > 0 && { $unset: unsetFields }),
      $inc: { version: 1 },
    },
    { hint: idIndex },
  )
  const { matchedCount } = await acknowledged(update)
  return matchedCount === 1
}

function editableFromDocument(document: MemoryDocument): EditableMemory {
  const { edited } = document
  return {
    id: document._id,
    tier: document.tier,
    at: document.at.getTime(),
    importance: document.importance,
    tokens: document.tokens,
    hash: document.hash.buffer,
    session: document.session || null,
    sessionEpoch: document.session_epoch,
    consolidated: document.consolidated,
    feedback: document.feedback,
    version: document.version,
    spaces: Object.keys(document.vectors),
    storedAt: document.stored_at.getTime(),
    expiresAt: document.expires_at?.getTime(),
    edited: edited ? { ...edited, at: edited.at.getTime() } : null,
  }
}
