import { fork, type ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { diskFullHint, isDiskFull } from '#shared/core/system-fault.ts'
import type { ReadyMessage } from '#shared/core/process-lifecycle.ts'

export type SupervisedProgram = {
  name: string
  program: string
  args?: readonly string[]
  /** After all others: they use it until they have ended. */
  stopsLast?: boolean
  /** Options of Node in addition to those of this process. */
  nodeOptions?: readonly string[]
}

export type SupervisionOptions = {
  env: Record<string, string | undefined>
  /** Resolves with the reason when a service that the programs need has ended unexpectedly. */
  unexpectedExit: Promise<string>
  /** Resolves when the parent process, which would send the stop signal, has ended. */
  parentExit?: Promise<void>
  /** Called once, when every program is ready, with their merged ready messages. */
  onReady: (message: ReadyMessage) => void
}

/** A program that crashes this often within a minute is not started again. */
const restartsMax = 5
const restartDelayMs = 1_000
/** A program that has not ended after this time is killed. */
const stopTimeoutMs = 28_000

const root = fileURLToPath(new URL('..', import.meta.url))

/**
 * Runs programs until SIGTERM or SIGINT, then stops them all. A program that crashes is started
 * again. Each has its own process group, so that Ctrl-C reaches it once, through this process; each
 * ends by itself when this process is killed.
 *
 * @returns when all have ended: the fault that stopped them; null after a signal.
 */
export async function superviseProcesses(
  programs: readonly SupervisedProgram[],
  { env, unexpectedExit, parentExit, onReady }: SupervisionOptions,
): Promise<{ fault: string | null }> {
  const children = new Map<string, ChildProcess>()
  const crashes = new Map<string, number[]>()
  const readyMessage: ReadyMessage = {}
  let stopping = false

  const { promise: stopRequest, resolve: requestStop } = Promise.withResolvers<string | null>()
  // The package of the embedded database handles these signals and would exit before the drain is done.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    process.removeAllListeners(signal)
    process.on(signal, () => requestStop(null))
  }
  void parentExit?.then(() => requestStop(null))
  void unexpectedExit.then(reason => requestStop(describeDatabaseEnd(reason)))

  const run = (supervised: SupervisedProgram): Promise<unknown> => {
    const { name, program, args = [], nodeOptions = [] } = supervised
    const execArgv = [...process.execArgv, ...nodeOptions]
    const child = fork(program, args, { cwd: root, env, execArgv, detached: true })
    children.set(name, child)
    return new Promise<unknown>(resolve => {
      child.on('message', (message: ReadyMessage) => {
        if (!isFileReport(message)) resolve(Object.assign(readyMessage, message))
      })
      child.once('exit', (code, signal) => {
        children.delete(name)
        resolve(null)
        if (stopping) return
        const recent = (crashes.get(name) ?? []).filter(at => Date.now() - at < 60_000)
        crashes.set(name, [...recent, Date.now()])
        if (recent.length >= restartsMax || (recent.length === 0 && !started)) {
          requestStop(`${name} ended (${signal ?? `exit code ${code}`})`)
        } else setTimeout(() => stopping || void run(supervised), restartDelayMs)
      })
    })
  }

  let started = false
  await Promise.race([Promise.all(programs.map(run)), stopRequest])
  started = true
  if (children.size === programs.length) onReady(readyMessage)

  const fault = await stopRequest
  stopping = true
  for (const isLast of [false, true]) {
    const ending = programs.filter(({ stopsLast = false }) => stopsLast === isLast)
    const running = ending.flatMap(({ name }) => children.get(name) ?? [])
    await Promise.all(running.map(stopChild))
  }
  return { fault }
}

/** Whether Node reports which files a program has loaded, as it does under `--watch`. */
const isFileReport = (message: object): boolean =>
  Object.keys(message).some(key => key.startsWith('watch:'))

/** It is not started again in place: what ended it (a full disk, too little memory) would end it again. */
function describeDatabaseEnd(reason: string): string {
  const hint = isDiskFull(new Error(reason))
    ? diskFullHint
    : 'Everything was stopped, and what was stored stays: start again'
  return `A database has ended: ${reason.trim()}\n${hint}`
}

function stopChild(child: ChildProcess): Promise<void> {
  return new Promise(resolve => {
    const timer = setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs)
    child.once('exit', () => {
      clearTimeout(timer)
      resolve()
    })
    child.kill('SIGTERM')
  })
}
