import { Binary, type Filter } from 'mongodb'
import type { Expiry } from '#shared/domain/expiry.ts'
import type { Tier, VaultScope } from '#shared/domain/memory.ts'
import { deadlineMs, refuseWhenUnreachable, type Mongo } from '#shared/storage/mongo/connect.ts'
import { toBinaryVector, type MemoryDocument } from '#shared/storage/mongo/documents.ts'
import { withWriteTimeout } from '#shared/vault/base/memories.mongo.ts'
import { contentHashIndex, idIndex } from '#shared/storage/mongo/indexes.ts'

/** What an edit needs to know of a memory. */
export type EditableMemory = {
  id: string
  tier: Tier
  /** Epoch milliseconds. */
  at: number
  importance: number | undefined
  tokens: number
  session: string | null
  sessionEpoch: number
  consolidated: boolean
  version: number
  /** The vault spaces it has a vector in. */
  spaces: string[]
  storedAt: number
  expiresAt: number | undefined
  /** The last edit, and the tokens the debt counted before it; `at` in epoch milliseconds. */
  edited: { operation: string; at: number; before: number } | null
}

/** A part of a vault by its session, as of one of the session's epochs. */
export type TextLocation = { session: string | null; sessionEpoch: number }

export type TextReplacement = {
  operation: string
  text: string
  hash: Buffer
  tokens: number
  /** When it is over from now on; left out where that stays as it is. */
  expiry?: Expiry
  /** What the debt counts the memory for until this edit is settled. */
  debtTokensBefore: number
  vectors: ReadonlyMap<string, Float32Array>
}

/** A memory of this epoch of the vault, in its core or in any session; undefined when there is none. */
export async function findEditableMemory(
  { memories }: Pick<Mongo, 'memories'>,
  scope: Pick<VaultScope, 'vault' | 'epoch'>,
  id: string,
): Promise<EditableMemory | undefined> {
  const document = await memories
    .findOne(
      { _id: { $eq: id }, ...epochFilter(scope) },
      { projection: { text: 0, sources: 0 }, hint: idIndex, signal: deadline() },
    )
    .catch(refuseWhenUnreachable)
  return document ? editableFromDocument(document) : undefined
}

/** Where the vault has other memories of this content; sessions cleared since may be among them. */
export async function memoriesWithSameText(
  { memories }: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  { hash, except }: { hash: Buffer; except: string },
): Promise<TextLocation[]> {
  const rows = await memories
    .aggregate<{ _id: { session: string; epoch: number } }>(
      [
        {
          $match: {
            ...epochFilter(scope),
            hash: { $eq: new Binary(hash) },
            _id: { $ne: except },
          },
        },
        { $group: { _id: { session: '$session', epoch: '$session_epoch' } } },
      ],
      { hint: contentHashIndex, signal: deadline() },
    )
    .toArray()
    .catch(refuseWhenUnreachable)
  return rows.map(({ _id: { session, epoch } }) => ({
    session: session || null,
    sessionEpoch: epoch,
  }))
}

/**
 * Gives a memory another text with its vectors, in one write, journaled; vectors it is not given go.
 *
 * @returns false, with nothing written, when the memory is not any more as it was read: changed,
 *   consolidated or deleted meanwhile.
 */
export async function replaceText(
  { memories }: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  { id, version, consolidated }: EditableMemory,
  { operation, text, hash, tokens, debtTokensBefore, vectors, expiry }: TextReplacement,
): Promise<boolean> {
  const spaces = [...vectors].map(([space, vector]) => [space, toBinaryVector(vector)])
  const goneEnds = {
    ...(expiry && expiry.expiresAt === undefined && { expires_at: '' as const }),
    ...(expiry && expiry.expiresAsked === undefined && { expires_asked: '' as const }),
  }
  const writing = memories.updateOne(
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
      ...(Object.keys(goneEnds).length > 0 && { $unset: goneEnds }),
      $inc: { version: 1 },
    },
    { hint: idIndex },
  )
  const { matchedCount } = await withWriteTimeout(writing).catch(refuseWhenUnreachable)
  return matchedCount === 1
}

const epochFilter = ({
  vault,
  epoch,
}: Pick<VaultScope, 'vault' | 'epoch'>): Filter<MemoryDocument> => ({
  vault: { $eq: vault },
  epoch: { $eq: epoch },
})

function editableFromDocument(document: MemoryDocument): EditableMemory {
  const { edited } = document
  return {
    id: document._id,
    tier: document.tier,
    at: document.at.getTime(),
    importance: document.importance,
    tokens: document.tokens,
    session: document.session || null,
    sessionEpoch: document.session_epoch,
    consolidated: document.consolidated,
    version: document.version,
    spaces: Object.keys(document.vectors),
    storedAt: document.stored_at.getTime(),
    expiresAt: document.expires_at?.getTime(),
    edited: edited ? { ...edited, at: edited.at.getTime() } : null,
  }
}

const deadline = (): AbortSignal => AbortSignal.timeout(deadlineMs)
