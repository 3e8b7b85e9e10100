import closeWithGrace from 'close-with-grace'
import { ConfigError } from '#shared/core/config.ts'
import { diskFullHint, isDiskFull } from '#shared/core/disk-full.ts'
import { Refusal } from '#shared/core/errors.ts'
import type { Log } from '#shared/core/log.ts'
import { releaseStartMemory } from '#shared/core/release-start-memory.ts'
import { systemFault } from '#shared/core/system-fault.ts'

/** What a process sends its launcher once it is ready. */
export type ReadyMessage = { port?: number }

/** Platforms give about 30 s between SIGTERM and SIGKILL. */
const drainMs = 25_000

/**
 * Reports that the process is ready, and shuts it down: on SIGTERM, SIGINT, a crash, or when the
 * launcher that started it has exited, `close` runs for at most 25 s. The process exits with 0
 * unless it crashed.
 *
 * @param options `isServing`: whether a request waits for its response
 */
export function runUntilStopped(
  log: Log,
  close: () => Promise<void>,
  { port, isServing = () => false }: { port?: number; isServing?: () => boolean } = {},
): void {
  closeWithGrace({ delay: drainMs, logger: false }, async ({ err, signal }) => {
    if (err) log.fatal({ err }, 'process.crashed')
    else log.info({ signal }, 'process.draining')
    await close()
    log.info({}, 'process.stopped')
  })
  process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
  const readyMessage: ReadyMessage = port === undefined ? {} : { port }
  process.send?.(readyMessage)
  void releaseStartMemory(isServing)
}

/**
 * Runs an entry point. A fault that the operator can fix (the environment, a port in use, a store
 * out of reach) is printed as one sentence and the process exits with 1; any other error prints its
 * stack.
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

/** For a store out of reach, the operator needs another hint than a client. */
function startupHint(refusal: Refusal): string | undefined {
  const { message, hint } = refusal
  if (isDiskFull(refusal)) return diskFullHint
  return message.endsWith('out of reach')
    ? 'Check DATABASE_URL and MONGODB_URI, and that both servers run'
    : hint
}

function startupErrorMessage(error: unknown): string | null {
  if (error instanceof ConfigError) return error.message
  if (error instanceof Refusal) {
    const fault = isDiskFull(error) ? null : systemFault(error.cause)
    return fault ?? [error.message, startupHint(error)].filter(Boolean).join('\n')
  }
  return systemFault(error)
}
