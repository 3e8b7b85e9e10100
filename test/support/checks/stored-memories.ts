import { Binary } from 'mongodb'
import type { Backend } from '#shared/backend.ts'
import { memoryIdOf, mintId } from '#shared/core/ids.ts'
import { hashKey } from '#shared/access/key.ts'
import type { Role, Tier, VaultScope } from '#shared/domain/memory.ts'
import { toBinaryVector, type MemoryDocument } from '#shared/storage/mongo/documents.ts'
import { contentHash } from '#shared/vault/base/memories.mongo.ts'
import { findKey } from '#shared/access/key-row.postgres.ts'
import { changeVault } from '#shared/vault/base/vaults.postgres.ts'
import { countTokens } from '#shared/core/tokens.ts'

/** The current scope of the vault of a key. */
export async function readVaultScope(
  { postgres, config }: Backend,
  key: string,
): Promise<VaultScope> {
  const { vault, epoch, revision } = (await findKey(
    postgres.query,
    hashKey(config.keyPepper, key),
  ))!
  return { vault, epoch, revision }
}

/** A memory for a test; missing fields get default values. */
export type StoredMemoryFixture = {
  id?: string
  tier?: Tier
  role?: Role
  text: string
  /** Epoch milliseconds. */
  at: number
  tokens?: number
  importance?: number
  speaker?: string
  session?: string
  consolidated?: boolean
  batch?: string
  sources?: string[]
  /** Start of the time a reflection covers; the end is `at`. */
  coversFrom?: number
  consolidatedBy?: string[]
}

/**
 * Stores memories of any tier and time in a vault, with their debt; visible from the next request on.
 *
 * @param vectors false leaves them out: for vaults that are only listed.
 * @returns their ids, in order.
 */
export async function insertStoredMemories(
  { mongo, embedders, postgres }: Backend,
  { vault, epoch }: VaultScope,
  rows: readonly StoredMemoryFixture[],
  { vectors = true }: { vectors?: boolean } = {},
): Promise<string[]> {
  const embedder = await embedders.get()
  const operation = mintId()
  const made = vectors ? await embedder.embedTexts(rows.map(({ text }) => text)) : []
  const documents = rows.map((row, index): MemoryDocument => {
    const vector = made[index]
    return {
      ...documentOf(row),
      _id: row.id ?? memoryIdOf(operation, index),
      operation,
      vault,
      epoch,
      vectors: vector ? { [embedder.space]: toBinaryVector(vector) } : {},
    }
  })
  const starts = Array.from({ length: Math.ceil(documents.length / 1_000) }, (_, n) => n * 1_000)
  await Promise.all(
    starts.map(start =>
      mongo.memories.insertMany(documents.slice(start, start + 1_000), { ordered: false }),
    ),
  )
  const waiting = documents.filter(row => row.session === '' && !row.consolidated)
  const raw = waiting.filter(({ tier }) => tier === 1)
  const tier2 = waiting.filter(({ tier }) => tier === 2)
  const sum = (some: MemoryDocument[], field: 'tokens' | 'importance') =>
    some.reduce((total, row) => total + (row[field] ?? 0), 0)
  const changes = [...Map.groupBy(documents, ({ session }) => session)].map(([session, some]) => ({
    session: session || null,
    stored: some.map(({ _id }) => _id),
  }))
  await changeVault({ query: postgres.query }, vault, changes, {
    rawUnits: raw.length,
    rawTokens: sum(raw, 'tokens'),
    tier2Count: tier2.length,
    tier2Importance: sum(tier2, 'importance'),
    tier2Tokens: sum(tier2, 'tokens'),
  })
  return documents.map(({ _id }) => _id)
}

/** Fields that are generated. */
type GeneratedField = '_id' | 'vault' | 'epoch' | 'operation' | 'vectors'

function documentOf(row: StoredMemoryFixture): Omit<MemoryDocument, GeneratedField> {
  const {
    tier = 1,
    text,
    at,
    importance,
    speaker,
    batch,
    sources,
    coversFrom,
    consolidatedBy,
  } = row
  return {
    session: row.session ?? '',
    session_epoch: 0,
    tier,
    role: row.role ?? (tier === 1 ? 'user' : 'system'),
    text,
    hash: new Binary(contentHash(text)),
    at: new Date(at),
    stored_at: new Date(),
    tokens: row.tokens ?? countTokens(text),
    ...(importance !== undefined && { importance }),
    ...(speaker !== undefined && { speaker }),
    consolidated: row.consolidated ?? false,
    ...(batch !== undefined && { batch }),
    ...(sources !== undefined && { sources }),
    ...(coversFrom !== undefined && { covers: { from: new Date(coversFrom), to: new Date(at) } }),
    ...(consolidatedBy !== undefined && { consolidated_by: consolidatedBy }),
    version: 1,
  }
}

/** Usage events of one kind in a vault that cost tokens, oldest first. */
export async function readBilledUsage(
  { postgres, usage }: Backend,
  { vault }: VaultScope,
  kind: string,
): Promise<{ tokens: number; session: string | null }[]> {
  await usage.flush()
  const { rows } = await postgres.query<{ tokens: number; session: string | null }>(
    `select memory_tokens as tokens, session from usage_events
     where vault = $1 and kind = $2 and memory_tokens > 0 order by at, id`,
    [vault, kind],
  )
  return rows
}
