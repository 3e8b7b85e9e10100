import { ExchangeLedger } from '#scripts/prove/exchange-ledger.ts'
import {
  Faults,
  pauseBetween,
  runLoops,
  type SectionContext,
  type SectionResult,
} from '#scripts/prove/section.ts'

const clients = 8
const settleMs = 180_000

/**
 * Kills and pauses processes at random moments under load. Every exchange that was answered with a 2xx is stored
 * once, every other one at most once; one that was waited for is found at once.
 */
export async function proveKills({ cluster, ms, random }: SectionContext): Promise<SectionResult> {
  const faults = new Faults()
  const ledger = await ExchangeLedger.open('kills', { cluster, random, faults })
  let kills = 0
  let pauses = 0
  await Promise.all([
    breakProcesses(Date.now() + ms),
    runLoops(clients, ms, async client => void (await ledger.sendExchange(`client ${client}`))),
  ])
  await cluster.settle(settleMs)
  return {
    figures: [
      { name: 'kills', value: kills },
      { name: 'pauses', value: pauses },
      ...(await ledger.compare()),
    ],
    faults: faults.first,
  }

  async function breakProcesses(until: number): Promise<void> {
    const restarts: Promise<void>[] = []
    while (Date.now() < until) {
      await pauseBetween(300, 2_000, random)
      const index = Math.floor(random() * cluster.count)
      if (random() < 0.2) {
        pauses++
        await cluster.pause(index, 500 + random() * 1_500)
      } else {
        // Others are killed while it starts.
        restarts.push(cluster.kill(index).then(isKilled => void (kills += isKilled ? 1 : 0)))
      }
    }
    await Promise.all(restarts)
  }
}
