import t from 'tap'
import { memoryIdOf, mintId } from '#shared/core/ids.ts'
import { createVaultIndex } from '#shared/search/index/vault-index.ts'
import { termsOf } from '#shared/search/words/index-terms.ts'
import { buildKey } from '#test/support/api.ts'
import { createTestBackend } from '#test/support/backend.ts'
import { watchEventLoop } from '#test/support/event-loop.ts'
import { resolveCaller } from '#test/support/insert-memories.ts'

/* Loading a large vault is made of short turns of the event loop: others are served in between. */

t.setTimeout(0)

const rowsMax = 1_000
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

const cpuOf = (work: () => void): number => {
  const before = process.threadCpuUsage()
  work()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1_000
}

t.test('no turn of loading takes as long as putting twenty long rows', async t => {
  const operation = mintId()
  const { scope } = await resolveCaller(backend, await buildKey(backend))
  const place = { vault: scope.vault, epoch: scope.epoch, session: null, sessionEpoch: 0 }
  const rows = Array.from({ length: rowsMax }, (_, n) => rowOf(operation, n))
  await backend.memories.add(
    rows.map(row => ({ ...row, ...place, operation })),
    'long',
  )
  const inTwenties = createVaultIndex({ dimension, termsOf, packLater: true })
  const costs = Array.from({ length: 20 }, (_, batch) =>
    cpuOf(() => inTwenties.put(rows.slice(batch * 20, (batch + 1) * 20))),
  )
  const twentyMs = costs.toSorted((one, other) => one - other)[10]!

  const stop = watchEventLoop()
  const index = await backend.vaultIndexes.get({ scope, session: null, space: 'long', dimension })
  const longest = stop()
  t.comment(`${longest.toFixed(1)} ms in the longest turn, ${twentyMs.toFixed(1)} ms for 20 rows`)
  t.equal(index === 'too-large' ? 0 : index.byTier[1].count, rowsMax)
  t.ok(longest < twentyMs, `${longest.toFixed(1)} of ${twentyMs.toFixed(1)} ms`)
})
