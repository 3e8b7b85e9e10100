// Keeps one set of services for everyone who tests this checkout, in a process of its own, and
// ends it when nobody needs it any more. Started by shared-set.ts.
import { rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { holdLock } from '#scripts/services/lock.ts'
import { ownDir } from '#scripts/services/own-dir.ts'
import { isAlive } from '#scripts/services/process.ts'
import { startServices, type Services } from '#scripts/services/services.ts'
import { controlPath, setDir, type Report, type Request } from '#test/setup/shared-set.ts'

/** Who runs one test file will soon run it again. */
const LINGER_MS = 60_000
const WATCH_EVERY_MS = 500

const dir = setDir()
const users = new Set<Socket>()
const holders = new Set<number>()
/** How long to stay when the last user has gone: not at all after a whole run. */
let lingerMs = LINGER_MS
let idle: NodeJS.Timeout | undefined
let ending = false

const services = await begin()
const server = createServer(serve).listen(controlPath(dir), () => void tell({ ready: true }))
setInterval(letGoOfTheDead, WATCH_EVERY_MS)
endWhenUnused()
process.on('SIGTERM', () => void end())
process.on('SIGINT', () => void end())
void services.died.then(end)

/** Gives way to another keeper, whether that one is starting or just ending. */
async function begin(): Promise<Services> {
  try {
    await ownDir(dir)
  } catch (error) {
    return await leave({ failed: (error as Error).message })
  }
  if (!holdLock(join(dir, 'keeper.lock'), 0)) return await leave({ gaveWay: true })

  try {
    rmSync(controlPath(dir), { force: true })
    return await startServices({
      dataDir: join(dir, 'data'),
      log: line => void tell({ log: line }),
      forTests: true,
      databaseUrl: process.env['DATABASE_URL'],
      mongodbUri: process.env['MONGODB_URI'],
    })
  } catch (error) {
    // What a power cut left of data without fsync must not stand in the way of the next try.
    rmSync(dir, { recursive: true, force: true })
    const { message, hint } = error as Error & { hint?: string }
    return await leave({ failed: [message, hint].filter(Boolean).join(' ') })
  }
}

async function leave(report: Report): Promise<never> {
  await tell(report)
  process.exit(0)
}

/** Whoever started us may be gone meanwhile; the services are for others, too. */
async function tell(report: Report): Promise<void> {
  if (process.connected) await new Promise(resolve => process.send!(report, resolve))
}

function serve(connection: Socket): void {
  connection.on('error', () => {})
  connection.on('close', () => {
    if (users.delete(connection)) endWhenUnused()
  })
  createInterface({ input: connection }).once('line', line => {
    take(JSON.parse(line) as Request, connection)
    const { databaseUrl, mongodbUri } = services
    if (!ending) connection.write(`${JSON.stringify({ databaseUrl, mongodbUri })}\n`)
  })
}

function take(request: Request, connection: Socket): void {
  if (request.do === 'join') {
    users.add(connection)
    lingerMs = holders.size === 0 ? LINGER_MS : 0
  } else if (request.do === 'hold') {
    holders.add(request.pid)
    lingerMs = 0
  } else {
    holders.delete(request.pid)
  }
  endWhenUnused()
}

/** A runner that was killed does not release. */
function letGoOfTheDead(): void {
  const dead = [...holders].filter(pid => !isAlive(pid))
  for (const pid of dead) holders.delete(pid)
  if (dead.length > 0) endWhenUnused()
}

function endWhenUnused(): void {
  clearTimeout(idle)
  if (users.size > 0 || holders.size > 0) return
  if (lingerMs === 0) void end()
  else idle = setTimeout(() => void end(), lingerMs)
}

async function end(): Promise<void> {
  if (ending) return
  ending = true
  server.close()
  await services.stop()
  rmSync(dir, { recursive: true, force: true })
  process.exit(0)
}
