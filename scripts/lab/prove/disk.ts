import { execFile } from 'node:child_process'
import { mkdirSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Cluster } from '#scripts/lab/prove/cluster.ts'
import { ExchangeLedger } from '#scripts/lab/prove/exchange-ledger.ts'
import {
  createTimeLimit,
  Faults,
  notRun,
  pauseBetween,
  runLoops,
  type SectionContext,
  type SectionResult,
} from '#scripts/lab/prove/section.ts'
import { Stores, storeNames, type StoreName } from '#scripts/lab/prove/stores.ts'

const run = promisify(execFile)
const clients = 4
const settleMs = 180_000
const sizeMiB = 1_024
const roundsLeast = storeNames.length

/**
 * The disk of one database after the other is full for a while, under load; a database that ends by it is started
 * again once there is room. What was acknowledged is stored once. Each has a small memory disk of its own, which is
 * made no larger than what it holds: where the system permits no mount, nothing is run.
 */
export async function proveFullDisk(context: SectionContext): Promise<SectionResult> {
  const { folder, ms, random } = context
  const dataDir = join(folder, 'small-disks')
  const mounted: string[] = []
  try {
    for (const name of storeNames) mounted.push(await mountDisk(join(dataDir, name)))
  } catch {
    await Promise.all(mounted.map(unmount))
    return notRun('this system permits no mount of a small disk')
  }
  try {
    const stores = await Stores.start(dataDir, () => {})
    try {
      return await fillDisks({ stores, dataDir, ms, random })
    } finally {
      await stores.stop()
    }
  } finally {
    await Promise.all(mounted.map(unmount))
  }
}

type Disks = { stores: Stores; dataDir: string; ms: number; random: () => number }

async function fillDisks({ stores, dataDir, ms, random }: Disks): Promise<SectionResult> {
  const faults = new Faults()
  const cluster = await Cluster.start({
    ...stores.environment,
    EMBEDDINGS: 'local',
    LOG_LEVEL: 'silent',
  })
  try {
    const ledger = await ExchangeLedger.open('disk', { cluster, random, faults })
    const ended = { postgres: 0, mongodb: 0 }
    let rounds = 0
    const isOver = createTimeLimit(ms)
    const filling = (async () => {
      for (; rounds < roundsLeast || !isOver(); rounds++) {
        const name = storeNames[rounds % storeNames.length]!
        await pauseBetween(500, 1_500, random)
        await leaveNoRoom(join(dataDir, name))
        await pauseBetween(2_000, 5_000, random)
        await setDiskSize(join(dataDir, name), sizeMiB * 1_024)
        // A server that could not recover without room ends a moment later.
        await pauseBetween(500, 1_000, random)
        if (await startAgain(stores, name)) ended[name]++
      }
    })()
    await Promise.all([
      filling,
      runLoops(
        clients,
        isOver,
        async client => void (await ledger.sendExchange(`client ${client}`)),
      ),
    ])
    await cluster.settle(settleMs)
    return {
      figures: [
        { name: 'times a disk was full', value: rounds },
        { name: 'times Postgres ended by it', value: ended.postgres },
        { name: 'times MongoDB ended by it', value: ended.mongodb },
        ...(await ledger.compare()),
        { name: 'processes that ended by it', value: cluster.crashes, most: 0 },
      ],
      faults: faults.first,
    }
  } finally {
    await cluster.stop()
  }
}

/** @returns whether the server had ended */
async function startAgain(stores: Stores, name: StoreName): Promise<boolean> {
  if (stores.runs(name)) return false
  await stores.end(name)
  await stores.begin(name)
  return true
}

async function mountDisk(path: string): Promise<string> {
  mkdirSync(path, { recursive: true, mode: 0o700 })
  await run('mount', ['-t', 'tmpfs', '-o', `size=${sizeMiB}m,mode=0700`, 'vault-proof', path])
  return path
}

/** Makes a disk as small as what it holds, with room for a page or two. */
async function leaveNoRoom(path: string): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    const { bsize, blocks, bfree } = statfsSync(path)
    const usedKiB = ((blocks - bfree) * bsize) / 1_024
    try {
      return await setDiskSize(path, Math.ceil(usedKiB) + 16)
    } catch (error) {
      // It holds more by now.
      if (attempt === 20) throw error
    }
  }
}

async function setDiskSize(path: string, kibibytes: number): Promise<void> {
  await run('mount', ['-o', `remount,size=${kibibytes}k`, path])
}

async function unmount(path: string): Promise<void> {
  await run('umount', [path])
}
