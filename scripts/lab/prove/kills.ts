import { ExchangeLedger } from '#scripts/lab/prove/exchange-ledger.ts'
import {
  createLimit,
  createTimeLimit,
  Faults,
  pauseBetween,
  pickOne,
  runLoops,
  sumFigures,
  type Figure,
  type SectionContext,
  type SectionResult,
} from '#scripts/lab/prove/section.ts'

const clients = 8
const settleMs = 180_000
/** After so long what was stored is compared, and a new vault begins. */
const roundMs = 120_000

/**
 * Kills and pauses processes at random moments under load. Every exchange that was answered with a 2xx is stored
 * once, every other one at most once; one that was waited for is found at once.
 */
export async function proveKills(context: SectionContext): Promise<SectionResult> {
  const { cluster, random } = context
  const faults = new Faults()
  const rounds: Figure[][] = []
  let kills = 0
  let pauses = 0
  const isOver = createLimit(context, () => kills)
  do await proveRound(`kills-${rounds.length}`)
  while (!isOver())
  return {
    figures: [
      { name: 'kills', value: kills },
      { name: 'pauses', value: pauses },
      ...sumFigures(rounds),
    ],
    faults: faults.first,
  }

  async function proveRound(name: string): Promise<void> {
    const ledger = await ExchangeLedger.open(name, { cluster, random, faults })
    const isRoundOver = createTimeLimit(roundMs)
    const isEnd = (): boolean => isOver() || isRoundOver()
    await Promise.all([
      breakProcesses(isEnd),
      runLoops(
        clients,
        isEnd,
        async client => void (await ledger.sendExchange(`client ${client}`)),
      ),
    ])
    await cluster.settle(settleMs)
    rounds.push(await ledger.compare())
  }

  async function breakProcesses(isEnd: () => boolean): Promise<void> {
    const restarts: Promise<void>[] = []
    while (!isEnd()) {
      await pauseBetween(200, 1_600, random)
      const index = pickOne(cluster.running, random)
      if (index === undefined) continue
      if (random() < 0.1) {
        pauses++
        await cluster.pause(index, 500 + random() * 1_500)
      } else {
        kills++
        // Others are killed while it starts.
        restarts.push(cluster.kill(index))
      }
    }
    await Promise.all(restarts)
  }
}
