// A process that runs one set of database services for all tests of this checkout and ends when
// no test uses it any more. Started by shared-services.ts.
import { rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { acquireLock } from '#scripts/services/file-lock.ts'
import { ensurePrivateDir } from '#scripts/services/private-dir.ts'
import { startServices, type DatabaseServices } from '#scripts/services/services.ts'
import {
  controlSocketPath,
  sharedServicesDir,
  type KeeperReport,
  type KeeperRequest,
} from '#test/setup/shared-services.ts'

/** Time until an unused set ends: a single test file is often run again soon. */
const LINGER_MS = 60_000

const dir = sharedServicesDir()
const users = new Set<Socket>()
/** Time from the last disconnect to the end; 0 after a run of all tests. */
let lingerMs = LINGER_MS
let idle: NodeJS.Timeout | undefined
let isStopping = false

const services = await startSharedServices()
const server = createServer({ allowHalfOpen: true }, handleConnection).listen(
  controlSocketPath(dir),
  () => void sendReport({ ready: true }),
)
stopWhenUnused()
process.on('SIGTERM', () => void stopKeeper())
process.on('SIGINT', () => void stopKeeper())
void services.unexpectedExit.then(stopKeeper)

/** Starts the services. Ends this process when another keeper has the lock. */
async function startSharedServices(): Promise<DatabaseServices> {
  try {
    await ensurePrivateDir(dir)
  } catch (error) {
    return await exitWithReport({ failed: (error as Error).message })
  }
  if (!acquireLock(join(dir, 'keeper.lock'), 0)) return await exitWithReport({ gaveWay: true })

  try {
    rmSync(controlSocketPath(dir), { force: true })
    return await startServices({
      dataDir: join(dir, 'data'),
      log: line => void sendReport({ log: line }),
      forTests: true,
      databaseUrl: process.env['DATABASE_URL'],
      mongodbUri: process.env['MONGODB_URI'],
    })
  } catch (error) {
    // Data without fsync may be corrupt after a power cut; the next attempt starts without it.
    rmSync(dir, { recursive: true, force: true })
    const { message, hint } = error as Error & { hint?: string }
    return await exitWithReport({ failed: [message, hint].filter(Boolean).join(' ') })
  }
}

async function exitWithReport(report: KeeperReport): Promise<never> {
  await sendReport(report)
  process.exit(0)
}

/** Reports to the parent process, if it still runs. */
async function sendReport(report: KeeperReport): Promise<void> {
  if (process.connected) await new Promise(resolve => process.send!(report, resolve))
}

/** A user that ends its side of the connection sees the other side end when the services have ended, or are used. */
function handleConnection(connection: Socket): void {
  const leave = () => {
    if (users.delete(connection)) stopWhenUnused()
    if (!isStopping) connection.end()
  }
  connection.on('error', () => {})
  connection.on('end', leave).on('close', leave)
  createInterface({ input: connection }).once('line', line => {
    const { lingers } = JSON.parse(line) as KeeperRequest
    users.add(connection)
    if (!lingers) lingerMs = 0
    stopWhenUnused()
    const { databaseUrl, mongodbUri } = services
    if (!isStopping)
      connection.write(`${JSON.stringify({ databaseUrl, mongodbUri, pid: process.pid })}\n`)
  })
}

function stopWhenUnused(): void {
  clearTimeout(idle)
  if (users.size > 0) return
  if (lingerMs === 0) void stopKeeper()
  else idle = setTimeout(() => void stopKeeper(), lingerMs)
}

async function stopKeeper(): Promise<void> {
  if (isStopping) return
  isStopping = true
  server.close()
  await services.stop()
  rmSync(dir, { recursive: true, force: true })
  process.exit(0)
}
