import { fork, type ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { ReadyMessage } from '#shared/core/process-lifecycle.ts'

export type SupervisedProgram = { name: string; program: string }

export type SupervisionOptions = {
  env: Record<string, string | undefined>
  /** Resolves when a service the programs need has died. */
  unexpectedExit: Promise<string>
  /** Resolves when nobody is left who would stop us. */
  parentExit?: Promise<void>
  /** Called once, when every program has said that it is ready, with what they told. */
  onReady: (facts: ReadyMessage) => void
}

/** A program that ends by itself this often within a minute is not started again. */
const restartsMax = 5
const restartDelayMs = 1_000
/** After this a program that does not end is killed. */
const stopTimeoutMs = 28_000

const root = fileURLToPath(new URL('..', import.meta.url))

/**
 * Runs programs side by side until SIGTERM or SIGINT, then stops them all. One that crashes is
 * started again. They are in process groups of their own, so that Ctrl-C reaches them once, through
 * us, and they end by themselves when we are killed.
 *
 * @returns when all have ended: with the fault that made it so, or none when it was asked for.
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
  // The embedded database's package hooks these signals and would exit before anything has drained.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    process.removeAllListeners(signal)
    process.on(signal, () => requestStop(null))
  }
  void parentExit?.then(() => requestStop(null))
  void unexpectedExit.then(reason => requestStop(`A database has died: ${reason}`))

  const run = ({ name, program }: SupervisedProgram): Promise<unknown> => {
    const child = fork(program, [], { cwd: root, env, detached: true })
    children.set(name, child)
    return new Promise<unknown>(resolve => {
      child.once('message', (message: ReadyMessage) =>
        resolve(Object.assign(readyMessage, message)),
      )
      child.once('exit', (code, signal) => {
        children.delete(name)
        resolve(null)
        if (stopping) return
        const recent = (crashes.get(name) ?? []).filter(at => Date.now() - at < 60_000)
        crashes.set(name, [...recent, Date.now()])
        if (recent.length >= restartsMax || (recent.length === 0 && !started)) {
          requestStop(`${name} ended (${signal ?? `exit code ${code}`})`)
        } else setTimeout(() => stopping || void run({ name, program }), restartDelayMs)
      })
    })
  }

  let started = false
  await Promise.race([Promise.all(programs.map(run)), stopRequest])
  started = true
  if (children.size === programs.length) onReady(readyMessage)

  const fault = await stopRequest
  stopping = true
  await Promise.all([...children.values()].map(stopChild))
  return { fault }
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
