import { ExchangeLedger } from '#scripts/lab/prove/exchange-ledger.ts'
import {
  createTimeLimit,
  Faults,
  notRun,
  pauseBetween,
  pickOne,
  runLoops,
  type SectionContext,
  type SectionResult,
} from '#scripts/lab/prove/section.ts'
import { storeNames } from '#scripts/lab/prove/stores.ts'

const clients = 4
const settleMs = 180_000

/**
 * Stops and kills each database at random moments under load, and starts it again. What was acknowledged is stored
 * once, refusals say 503, and no process of the service ends by it.
 */
export async function proveRestarts(context: SectionContext): Promise<SectionResult> {
  const { cluster, stores, ms, random } = context
  if (!stores) return notRun('the databases were given, and are not ours to stop')
  const faults = new Faults()
  const ledger = await ExchangeLedger.open('restarts', { cluster, random, faults })
  const restarts = { stop: 0, kill: 0 }
  const crashesBefore = cluster.crashes
  const isOver = createTimeLimit(ms)
  const breaking = (async () => {
    for (let n = 0; n < storeNames.length || !isOver(); n++) {
      await pauseBetween(500, 2_000, random)
      // Each in turn, so that a short run has both.
      const name = storeNames[n % storeNames.length]!
      const how = pickOne(['stop', 'kill'] as const, random)
      await stores.end(name, how)
      await pauseBetween(0, 2_000, random)
      await stores.begin(name)
      restarts[how]++
    }
  })()
  await Promise.all([
    breaking,
    runLoops(clients, isOver, async client => void (await ledger.sendExchange(`client ${client}`))),
  ])
  await cluster.settle(settleMs)
  return {
    figures: [
      { name: 'databases stopped and started', value: restarts.stop },
      { name: 'databases killed and started', value: restarts.kill },
      ...(await ledger.compare()),
      { name: 'processes that ended by it', value: cluster.crashes - crashesBefore, most: 0 },
    ],
    faults: faults.first,
  }
}
