import fc from 'fast-check'
import t from 'tap'
import { consolidated, consolidation } from '#test/model/consolidation.ts'
import { reads } from '#test/model/reads.ts'
import { emptyVault } from '#test/model/vault-model.ts'
import { told, writes } from '#test/model/writes.ts'
import {
  buildKey,
  createTestClient,
  startTestApi,
  startJobWorkers,
} from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'

// MODEL_RUNS=2000 runs as many histories; MODEL_SEED repeats those of a seed that was printed.
const runs = Number(process.env['MODEL_RUNS'] ?? 6)
const seed = Number(process.env['MODEL_SEED'] ?? 20_261_126)
const perHistory = 45

t.setTimeout(600_000 + runs * 60_000)

const backend = await createTestBackend(t)
await startJobWorkers(backend)
const { base } = await startTestApi(t, backend)

const newPair = async () => {
  const key = await buildKey(backend)
  return { key, client: createTestClient(base, key), model: emptyVault() }
}

t.test('two vaults do in any order of requests what a simple model does', async t => {
  t.comment(`MODEL_SEED=${seed}`)
  let steps = 0
  const commands = [...writes, ...consolidation(backend), ...reads]
  await fc.assert(
    fc.asyncProperty(
      fc.commands(commands, { maxCommands: perHistory, size: 'max' }),
      async history => {
        const pairs = [await newPair(), await newPair()]
        for (const first of [told, ...consolidated]) await first.run({}, pairs)
        await fc.asyncModelRun(() => ({ model: {}, real: pairs }), history)
        steps += [...history].length
      },
    ),
    { numRuns: runs, endOnFailure: runs <= 12, seed },
  )
  t.ok(steps > runs, `${runs} histories of ${Math.round(steps / runs)} steps`)
})
