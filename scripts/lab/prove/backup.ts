import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Cluster } from '#scripts/lab/prove/cluster.ts'
import { ExchangeLedger } from '#scripts/lab/prove/exchange-ledger.ts'
import {
  createTimeLimit,
  Faults,
  notRun,
  runLoops,
  type SectionContext,
  type SectionResult,
} from '#scripts/lab/prove/section.ts'
import type { StoreName, Stores } from '#scripts/lab/prove/stores.ts'

const run = promisify(execFile)
const clients = 4
const settleMs = 180_000

/**
 * One database is put back as an older backup has it, the other is not, and `after-restore` runs: first Postgres,
 * whose backup has work that was done since, then MongoDB. What was stored before the backup is there once.
 */
export async function proveBackup(context: SectionContext): Promise<SectionResult> {
  const { cluster, stores, folder, ms, random } = context
  if (!stores) return notRun('the databases were given, and are not ours to put back')
  const faults = new Faults()
  const ledger = await ExchangeLedger.open('backup', { cluster, random, faults })
  const send = (what: string, isAwaited?: boolean): Promise<void> =>
    runLoops(
      clients,
      createTimeLimit(ms / 8),
      async () => void (await ledger.sendExchange(what, isAwaited)),
    )

  await send('the time before')
  // The backup of Postgres has accepted work that its restored state will see again.
  await cluster.stopProcesses('workers/index.ts')
  await send('the time without workers', false)
  await backUp('postgres')
  await send('the time after the backup of Postgres', true)
  await cluster.settle(settleMs)
  await restore('postgres')
  await send('the time after the restore of Postgres', true)
  await cluster.settle(settleMs)
  const afterPostgres = await ledger.compare()

  const kept = ledger.acknowledged
  await backUp('mongodb')
  await send('the time after the backup of MongoDB', true)
  await cluster.settle(settleMs)
  const storedSince = ledger.acknowledged.difference(kept)
  await restore('mongodb')
  await send('the time after the restore of MongoDB', true)
  await cluster.settle(settleMs)
  const afterMongo = await ledger.compare(storedSince)
  return {
    figures: [
      ...afterPostgres.map(figure => ({ ...figure, name: `Postgres put back: ${figure.name}` })),
      { name: 'exchanges that the backup of MongoDB lacks', value: storedSince.size },
      ...afterMongo.map(figure => ({ ...figure, name: `MongoDB put back: ${figure.name}` })),
    ],
    faults: faults.first,
  }

  async function backUp(name: StoreName): Promise<void> {
    await whileStopped(cluster, stores!, name, () => stores!.backUp(name, join(folder, name)))
    await cluster.startProcesses()
  }

  async function restore(name: StoreName): Promise<void> {
    await whileStopped(cluster, stores!, name, () => stores!.restore(name, join(folder, name)))
    const env = { ...cluster.environment }
    await run(process.execPath, ['scripts/migrate.ts'], { env })
    await run(process.execPath, ['scripts/after-restore.ts'], { env })
    await cluster.startProcesses()
  }
}

/** Stops all processes and one database for some work on its files; only the database is started again. */
async function whileStopped(
  cluster: Cluster,
  stores: Stores,
  name: StoreName,
  work: () => Promise<void>,
): Promise<void> {
  await cluster.stopProcesses()
  await stores.end(name)
  await work()
  await stores.begin(name)
}
