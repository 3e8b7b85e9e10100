import closeWithGrace from 'close-with-grace'
import { ConfigError } from '#shared/core/config.ts'
import { diskFullHint, isDiskFull, systemFault } from '#shared/core/system-fault.ts'
import { Refusal } from '#shared/core/errors.ts'
import { describeUnreachableStore } from '#shared/core/unreachable-store.ts'
import type { Log } from '#shared/core/log.ts'
import { performance } from 'node:perf_hooks'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Sent to the launcher of a process that is ready. */
export type ReadyMessage = { port?: number }

/** Platforms give about 30 s between SIGTERM and SIGKILL. */
const drainMs = 25_000

/**
 * Reports that the process is ready. On SIGTERM, SIGINT, a crash, or when its launcher has exited, `close` runs for at
 * most 25 s. The process exits with 0 unless it crashed.
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
 * Runs an entry point. A fault that the operator can fix (the environment, a port in use, a store out of reach) is
 * printed as a sentence, with exit code 1; any other error prints its stack.
 *
 * @param env names the databases where one is out of reach
 */
export async function runMain(main: () => Promise<void>, env: Environment = {}): Promise<void> {
  try {
    await main()
  } catch (error) {
    const fault = startupErrorMessage(error, env)
    if (fault === null) throw error
    process.stderr.write(`${fault}\n`)
    process.exit(1)
  }
}

type Environment = Record<string, string | undefined>

/** What an operator can mend about an error, in sentences; null for any other error. */
export function startupErrorMessage(error: unknown, env: Environment): string | null {
  if (error instanceof ConfigError) return error.message
  if (!(error instanceof Refusal)) return systemFault(error)
  const { message, hint } = error
  if (isDiskFull(error)) return `${message}\n${diskFullHint}`
  const fault = systemFault(error.cause) ?? describeUnreachableStore(error, env)
  return fault ?? [message, hint].filter(Boolean).join('\n')
}

type CollectGarbage = (options: { type: 'major'; execution: 'sync'; flavor: 'last-resort' }) => void

const idleUtilization = 0.1

/**
 * Collects the garbage of a process's start once, after 5 idle seconds: 94 MiB of a web and a worker process, which V8
 * otherwise keeps for good. It holds the event loop for about 0.2 s, so it waits until no request is being served: the
 * event loop is also idle while a thread works for one.
 *
 * @param lookEveryMs how long the process must have been idle
 * @returns a promise for its end, which does not keep the process alive
 */
export function releaseStartMemory(isServing: () => boolean, lookEveryMs = 5_000): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  let last = performance.eventLoopUtilization()
  const timer = setInterval(() => {
    const { utilization } = performance.eventLoopUtilization(last)
    last = performance.eventLoopUtilization()
    if (utilization > idleUtilization || isServing()) return
    clearInterval(timer)
    collectAllGarbage()
    resolve()
  }, lookEveryMs).unref()
  return promise
}

function collectAllGarbage(): void {
  setFlagsFromString('--expose-gc')
  const collectGarbage = runInNewContext('gc') as CollectGarbage
  setFlagsFromString('--no-expose-gc')
  collectGarbage({ type: 'major', execution: 'sync', flavor: 'last-resort' })
}
