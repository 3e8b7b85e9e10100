import closeWithGrace from 'close-with-grace'
import type { Log } from '#shared/log.ts'

/** What a process tells its launcher once it is ready. */
export type Facts = { port?: number }

/** Platforms give about 30 s between SIGTERM and SIGKILL. */
const drainMs = 25_000

/**
 * Says that the process is ready, and lets it end well: on SIGTERM, SIGINT, a crash, or when the
 * launcher that started it is gone, `close` runs for at most 25 s; then the process exits, with 0
 * unless it crashed.
 */
export function serveUntilStopped(log: Log, close: () => Promise<void>, facts: Facts = {}): void {
  closeWithGrace({ delay: drainMs, logger: false }, async ({ err, signal }) => {
    if (err) log.fatal({ err }, 'process.crashed')
    else log.info({ signal }, 'process.draining')
    await close()
    log.info({}, 'process.stopped')
  })
  process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
  process.send?.(facts)
}
