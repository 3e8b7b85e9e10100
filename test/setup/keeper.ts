// Keeps one set of services for everyone who tests this checkout, in a process of its own, and
// ends it when nobody needs it any more. Started by shared-set.ts.
import { rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { acquireLock } from '#scripts/services/file-lock.ts'
import { ensurePrivateDir } from '#scripts/services/private-dir.ts'
import { isAlive } from '#scripts/services/process.ts'
import { startServices, type DatabaseServices } from '#scripts/services/services.ts'
import {
  controlSocketPath,
  sharedServicesDir,
  type KeeperReport,
  type KeeperRequest,
} from '#test/setup/shared-services.ts'

/** Who runs one test file will soon run it again. */
const LINGER_MS = 60_000
const WATCH_EVERY_MS = 500

const dir = sharedServicesDir()
const users = new Set<Socket>()
const holders = new Set<number>()
/** How long to stay when the last user has gone: not at all after a whole run. */
let lingerMs = LINGER_MS
let idle: NodeJS.Timeout | undefined
let ending = false

const services = await startSharedServices()
const server = createServer(handleConnection).listen(
  controlSocketPath(dir),
  () => void sendReport({ ready: true }),
)
setInterval(removeDeadHolders, WATCH_EVERY_MS)
stopWhenUnused()
process.on('SIGTERM', () => void stopKeeper())
process.on('SIGINT', () => void stopKeeper())
void services.unexpectedExit.then(stopKeeper)

/** Gives way to another keeper, whether that one is starting or just ending. */
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
    // What a power cut left of data without fsync must not stand in the way of the next try.
    rmSync(dir, { recursive: true, force: true })
    const { message, hint } = error as Error & { hint?: string }
    return await exitWithReport({ failed: [message, hint].filter(Boolean).join(' ') })
  }
}

async function exitWithReport(report: KeeperReport): Promise<never> {
  await sendReport(report)
  process.exit(0)
}

/** Whoever started us may be gone meanwhile; the services are for others, too. */
async function sendReport(report: KeeperReport): Promise<void> {
  if (process.connected) await new Promise(resolve => process.send!(report, resolve))
}

function handleConnection(connection: Socket): void {
  connection.on('error', () => {})
  connection.on('close', () => {
    if (users.delete(connection)) stopWhenUnused()
  })
  createInterface({ input: connection }).once('line', line => {
    handleRequest(JSON.parse(line) as KeeperRequest, connection)
    const { databaseUrl, mongodbUri } = services
    if (!ending) connection.write(`${JSON.stringify({ databaseUrl, mongodbUri })}\n`)
  })
}

function handleRequest(request: KeeperRequest, connection: Socket): void {
  if (request.do === 'join') {
    users.add(connection)
    lingerMs = holders.size === 0 ? LINGER_MS : 0
  } else if (request.do === 'hold') {
    holders.add(request.pid)
    lingerMs = 0
  } else {
    holders.delete(request.pid)
  }
  stopWhenUnused()
}

/** A runner that was killed does not release. */
function removeDeadHolders(): void {
  const dead = [...holders].filter(pid => !isAlive(pid))
  for (const pid of dead) holders.delete(pid)
  if (dead.length > 0) stopWhenUnused()
}

function stopWhenUnused(): void {
  clearTimeout(idle)
  if (users.size > 0 || holders.size > 0) return
  if (lingerMs === 0) void stopKeeper()
  else idle = setTimeout(() => void stopKeeper(), lingerMs)
}

async function stopKeeper(): Promise<void> {
  if (ending) return
  ending = true
  server.close()
  await services.stop()
  rmSync(dir, { recursive: true, force: true })
  process.exit(0)
}
