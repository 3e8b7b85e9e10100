import closeWithGrace from 'close-with-grace'
import { ConfigError } from '#shared/core/config.ts'
import { Refusal } from '#shared/core/errors.ts'
import type { Log } from '#shared/core/log.ts'

/** What a process tells its launcher once it is ready. */
export type ReadyMessage = { port?: number }

/** Platforms give about 30 s between SIGTERM and SIGKILL. */
const drainMs = 25_000

/**
 * Says that the process is ready, and lets it end well: on SIGTERM, SIGINT, a crash, or when the
 * launcher that started it is gone, `close` runs for at most 25 s; then the process exits, with 0
 * unless it crashed.
 */
export function runUntilStopped(
  log: Log,
  close: () => Promise<void>,
  readyMessage: ReadyMessage = {},
): void {
  closeWithGrace({ delay: drainMs, logger: false }, async ({ err, signal }) => {
    if (err) log.fatal({ err }, 'process.crashed')
    else log.info({ signal }, 'process.draining')
    await close()
    log.info({}, 'process.stopped')
  })
  process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
  process.send?.(readyMessage)
}

/**
 * Runs an entry point. What the operator can mend (the environment, a port that is taken, a store
 * that is away) is said in a sentence and ends the process with 1; anything else shows its stack.
 */
export async function runMain(main: () => Promise<void>): Promise<void> {
  try {
    await main()
  } catch (error) {
    const fault = startupErrorMessage(error)
    if (fault === null) throw error
    process.stderr.write(`${fault}\n`)
    process.exit(1)
  }
}

/** Who starts a process can do more about a store that is away than try again. */
const startupHint = ({ message, hint }: Refusal): string | undefined =>
  message.endsWith('out of reach')
    ? 'Check DATABASE_URL and MONGODB_URI, and that both servers run'
    : hint

type ListenError = { address?: string; port?: number }

function startupErrorMessage(error: unknown): string | null {
  if (error instanceof ConfigError) return error.message
  if (error instanceof Refusal)
    return [error.message, startupHint(error)].filter(Boolean).join('\n')
  const { code, address, port, message } = error as Partial<NodeJS.ErrnoException> & ListenError
  if (code === 'EADDRINUSE') return `Port ${port} on ${address} is in use; set PORT to another one`
  if (code === 'EACCES' && port) return `Port ${port} may not be opened by this user; set PORT`
  if (code === 'EADDRNOTAVAIL') return `${address} is no address of this machine; set HOST`
  // Wrong user or password, or no such database.
  if (/^(?:28...|3D000)$/.test(code ?? '')) return `${message}; check DATABASE_URL`
  return null
}
