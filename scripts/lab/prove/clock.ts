import { fileURLToPath } from 'node:url'
import { ExchangeLedger } from '#scripts/lab/prove/exchange-ledger.ts'
import {
  createTimeLimit,
  Faults,
  pauseBetween,
  pickOne,
  runLoops,
  type SectionContext,
  type SectionResult,
} from '#scripts/lab/prove/section.ts'

const clients = 4
const settleMs = 180_000
const hourMs = 3_600_000
const shifts: readonly number[] = [
  -400 * 24 * hourMs,
  -24 * hourMs,
  -hourMs,
  -30_000,
  0,
  30_000,
  hourMs,
  24 * hourMs,
  400 * 24 * hourMs,
]
const preload = fileURLToPath(new URL('clock/shifted-date.ts', import.meta.url))

/**
 * The clock of every process jumps by itself, ahead and back, under load, while the database and the other processes
 * stay in the present. Nothing acknowledged is lost or doubled, and no answer is wrong.
 */
export async function proveClock({ cluster, ms, random }: SectionContext): Promise<SectionResult> {
  const faults = new Faults()
  const ledger = await ExchangeLedger.open('clock', { cluster, random, faults })
  const indexes = Array.from({ length: cluster.count }, (_, index) => index)
  await Promise.all(indexes.map(index => cluster.kill(index, ['--import', preload])))
  const crashesBefore = cluster.crashes
  let jumps = 0
  const isOver = createTimeLimit(ms)
  const jumping = (async () => {
    while (!isOver()) {
      cluster.tell(pickOne(indexes, random), { shiftMs: pickOne(shifts, random) })
      jumps++
      await pauseBetween(100, 1_000, random)
    }
  })()
  await Promise.all([
    jumping,
    runLoops(clients, isOver, async client => void (await ledger.sendExchange(`client ${client}`))),
  ])
  await cluster.settle(settleMs)
  const figures = await ledger.compare()
  await Promise.all(indexes.map(index => cluster.kill(index)))
  return {
    figures: [
      { name: 'jumps of a clock', value: jumps },
      ...figures,
      { name: 'processes that ended by it', value: cluster.crashes - crashesBefore, most: 0 },
    ],
    faults: faults.first,
  }
}
