import {
  createBenchKey,
  randomSentence,
  randomUnitVector,
  seededRandom,
} from '#scripts/bench/bench-environment.ts'
import { resolveCaller } from '#scripts/bench/fill-vault.ts'
import { mintMemoryKey, type MintedKey } from '#shared/access/mint.ts'
import type { Backend } from '#shared/backend.ts'
import type { Config } from '#shared/core/config.ts'
import { memoryIdOf, mintId } from '#shared/core/ids.ts'
import { countTokens } from '#shared/core/tokens.ts'
import type { NewMemory } from '#shared/vault/base/memories.mongo.ts'
import { changeVault } from '#shared/vault/base/vaults.postgres.ts'

const wordsEach = 20
const vaultsAtOnce = 100
/** Texts of which each vault has a random choice. */
const contentCount = 10_000

type Content = Pick<NewMemory, 'text' | 'tokens' | 'vector'>

type Seeding = { vaultCount: number; memoriesEach: number; seed: number }

/**
 * An account with many users, each with a key and a vault of raw memories of the last hours. Keys, rows of
 * Postgres and documents are written a hundred vaults at a time.
 *
 * @returns the users' keys.
 */
export async function fillUserVaults(
  backend: Backend,
  config: Config,
  { vaultCount, memoriesEach, seed }: Seeding,
): Promise<string[]> {
  const owner = await resolveCaller(backend, await createBenchKey(backend, config))
  const { space, dimension } = await backend.embedders.get()
  const next = seededRandom(seed)
  const contents = makeContents(contentCount, dimension, next)
  const pick = (): Content => contents[Math.floor(next() * contentCount)]!
  const keys: string[] = []
  for (let start = 0; start < vaultCount; start += vaultsAtOnce) {
    const count = Math.min(vaultsAtOnce, vaultCount - start)
    const { minted, epochs } = await mintUserKeys(backend, config, owner.account, count)
    const filled = minted.map(({ vault }) =>
      makeMemories(
        { vault, epoch: epochs.get(vault)! },
        Array.from({ length: memoriesEach }, pick),
      ),
    )
    await backend.memories.add(filled.flat(), space)
    await backend.postgres.transaction(async tx => {
      for (const rows of filled) {
        const stored = rows.map(({ id }) => id)
        const rawTokens = rows.reduce((sum, { tokens }) => sum + tokens, 0)
        const debt = { rawUnits: rows.length, rawTokens }
        await changeVault(tx, rows[0]!.vault, [{ session: null, stored }], debt)
      }
    })
    keys.push(...minted.map(({ key }) => key))
  }
  return keys
}

function mintUserKeys(
  { postgres }: Backend,
  { keyPepper }: Config,
  account: string,
  count: number,
) {
  return postgres.transaction(async tx => {
    const minted: MintedKey[] = []
    for (let user = 0; user < count; user++)
      minted.push(await mintMemoryKey(tx, keyPepper, { account, actor: 'bench', name: 'user' }))
    const { rows } = await tx.query<{ id: string; epoch: number }>(
      'select id, epoch from vaults where id = any($1)',
      [minted.map(({ vault }) => vault)],
    )
    return { minted, epochs: new Map(rows.map(({ id, epoch }) => [id, epoch])) }
  })
}

/** What memories are made of; counting the tokens of each of 500,000 would take longer than storing them. */
function makeContents(count: number, dimension: number, next: () => number): Content[] {
  return Array.from({ length: count }, () => {
    const text = randomSentence(wordsEach, next)
    return { text, tokens: countTokens(text), vector: randomUnitVector(dimension, next) }
  })
}

/** Memories one minute apart, the last one now. */
function makeMemories(
  { vault, epoch }: { vault: string; epoch: number },
  contents: readonly Content[],
): NewMemory[] {
  const operation = mintId()
  const from = Date.now() - contents.length * 60_000
  return contents.map((content, index) => ({
    ...content,
    id: memoryIdOf(operation, index),
    tier: 1,
    role: 'user',
    at: from + index * 60_000,
    vault,
    epoch,
    session: null,
    sessionEpoch: 0,
    operation,
  }))
}
