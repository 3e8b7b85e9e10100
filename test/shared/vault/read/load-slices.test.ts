import t from 'tap'
import { memoryIdOf, mintId } from '#shared/core/ids.ts'
import { createVaultIndex, type VaultIndex } from '#shared/search/index/vault-index.ts'
import { VaultIndexes } from '#shared/search/index/vault-indexes.ts'
import { termsOf } from '#shared/search/words/index-terms.ts'
import { MemoryStore } from '#shared/vault/base/memories.mongo.ts'
import { createIndexSource } from '#shared/vault/read/search/index-source.ts'
import { buildKey } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { resolveCaller } from '#test/support/start/insert-memories.ts'
import { countTurns, startStepClock } from '#test/support/checks/step-clock.ts'

/* Loading a large vault is made of short turns of the event loop: others are served in between. */

t.setTimeout(0)

const rowsMax = 200
const dimension = 1_536

const backend = await createTestBackend(t)
const words = Array.from({ length: 5_000 }, (_, n) => `word${(n * 7_919).toString(36)}`)

/** A text of some words that differ from row to row. */
const textOf = (n: number, length: number): string =>
  Array.from({ length }, (_, w) => words[(n * 31 + w * w * 17) % words.length]).join(' ')

/** A row as a vault stores it: one that was edited may have 32,000 characters. */
const rowOf = (operation: string, n: number) => ({
  id: memoryIdOf(operation, n),
  tier: 1 as const,
  role: 'user' as const,
  text: textOf(n, 2_000),
  at: 1e12 + n * 1_000,
  tokens: 2_000,
  vector: new Float32Array(dimension).map((_value, d) => Math.sin(n * 7 + d)),
})

/** The memories of MongoDB; each document is told of as it is read. */
function storeThatTells(onDocument: () => void): MemoryStore {
  const { memories } = backend.mongo
  const find = async function* (...args: Parameters<typeof memories.find>) {
    for await (const document of memories.find(...args)) {
      onDocument()
      yield document
    }
  }
  const told = new Proxy(memories, {
    get(target, name) {
      if (name === 'find') return find
      const value = Reflect.get(target, name) as unknown
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
  return new MemoryStore({ memories: told })
}

t.test('no turn of loading reads or puts more than a few long rows', async t => {
  const operation = mintId()
  const { scope } = await resolveCaller(backend, await buildKey(backend))
  const place = { vault: scope.vault, epoch: scope.epoch, session: null, sessionEpoch: 0 }
  const rows = Array.from({ length: rowsMax }, (_, n) => rowOf(operation, n))
  await backend.memories.add(
    rows.map(row => ({ ...row, ...place, operation })),
    'long',
  )
  const { turns, stop } = countTurns()
  const [readIn, putIn] = [new Map<number, number>(), new Map<number, number>()]
  const count = (counts: Map<number, number>, more: number): void =>
    void counts.set(turns(), (counts.get(turns()) ?? 0) + more)
  const indexes = new VaultIndexes(
    createIndexSource({ ...backend, memories: storeThatTells(() => count(readIn, 1)) }),
    {
      budgetBytes: 1e9,
      createIndex(options) {
        const index = createVaultIndex({ ...options, termsOf })
        const put: VaultIndex['put'] = some => {
          count(putIn, some.length)
          index.put(some)
        }
        return Object.assign(Object.create(index) as VaultIndex, { put })
      },
    },
  )
  startStepClock(t)
  const index = await indexes.get({ scope, session: null, space: 'long', dimension })
  stop()
  t.equal(index === 'too-large' ? 0 : index.byTier[1].count, rowsMax)
  for (const [what, counts, most] of [
    ['read', readIn, 3],
    // One has more characters than are put at once.
    ['put', putIn, 3],
  ] as const) {
    const all = [...counts.values()]
    const sum = all.reduce((sum, one) => sum + one, 0)
    t.equal(sum, rowsMax)
    t.ok(Math.max(...all) <= most, `${Math.max(...all)} rows ${what} in one turn`)
  }
})
