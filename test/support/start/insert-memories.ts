import type { Backend } from '#shared/backend.ts'
import { memoryIdOf, mintId } from '#shared/core/ids.ts'
import { authenticateMemoryKey, type Caller } from '#shared/access/caller.ts'
import { parseKey } from '#shared/access/key.ts'
import type { Memory } from '#shared/domain/memory.ts'
import { findSessionEpoch } from '#shared/vault/base/vault-changes.postgres.ts'
import { findKey } from '#shared/access/key-row.postgres.ts'
import { changeVault } from '#shared/vault/base/vaults.postgres.ts'
import { countTokens } from '#shared/core/tokens.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

/** The caller that a key authenticates. */
export const resolveCaller = ({ postgres, config }: Backend, key: string): Promise<Caller> =>
  authenticateMemoryKey(hash => findKey(postgres.query, hash), config.keyPepper, parseKey(key)!)

export type MemoryFixture = Partial<Memory> & { text: string }

/**
 * Stores memories in a vault as the workers do, with the change log and the debt. Much faster than
 * ingesting them one by one.
 *
 * @returns their ids, in order.
 */
export async function insertMemories(
  backend: Backend,
  key: string,
  memories: readonly MemoryFixture[],
  { session = null, embeddings }: { session?: string | null; embeddings?: string } = {},
): Promise<string[]> {
  const { scope } = await resolveCaller(backend, key)
  const embedder = await backend.embedders.get(embeddings)
  const sessionEpoch = await findSessionEpoch(backend.postgres.query, scope, session)
  const vectors = await embedder.embedTexts(memories.map(({ text }) => text))
  const operation = mintId()
  const rows = memories.map((memory, index) => ({
    id: memoryIdOf(operation, index),
    tier: 1 as const,
    role: 'user' as const,
    at: Date.now() + index,
    tokens: countTokens(memory.text),
    ...memory,
    vault: scope.vault,
    epoch: scope.epoch,
    session,
    sessionEpoch,
    operation,
    vector: vectors[index]!,
  }))
  await backend.memories.add(rows, embedder.space)
  const raw = session === null ? rows.filter(({ tier }) => tier === 1) : []
  const stored = rows.map(({ id }) => id)
  const debt = {
    rawUnits: raw.length,
    rawTokens: raw.reduce((sum, { tokens }) => sum + tokens, 0),
  }
  await backend.postgres.transaction(tx =>
    changeVault(tx, scope.vault, [{ session, stored }], debt),
  )
  return stored
}

/** All documents of the vault of a key, tombstones included, in the order of their ids. */
export async function readDocuments(backend: Backend, key: string) {
  const { scope } = await resolveCaller(backend, key)
  return backend.mongo.memories.find({ vault: scope.vault }).sort({ _id: 1 }).toArray()
}

/** The billed tokens of an operation; waits until it is billed, since some are written after the answer. */
export async function readBill(backend: Backend, operation: string): Promise<number> {
  const look = async (): Promise<number | undefined> => {
    const { rows } = await backend.postgres.query<{ tokens: number }>(
      'select memory_tokens as tokens from usage_events where id = $1',
      [operation],
    )
    return rows[0]?.tokens
  }
  await waitUntil('the bill is written', async () => (await look()) !== undefined)
  return (await look())!
}
