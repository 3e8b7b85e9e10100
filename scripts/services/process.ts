import { closeSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'

/** Receives messages for the operator, as sentences. */
export type LineLogger = (line: string) => void

/** A database server: started here, taken over, or external. */
export type DatabaseServer = {
  url: string
  /** Its main process; undefined for an external server. */
  pid: number | undefined
  /** Resolves with a description when the server ends without a call of `stop`. */
  unexpectedExit: Promise<string>
  /** Ends the server and waits until its data is written; a second call waits for the first. */
  stop(): Promise<void>
}

const LOG_TAIL_BYTES = 2_000

/** Returns whether a process of this id runs, also one of another user. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
  return !isZombie(pid)
}

/** Returns whether a process is a zombie: an ended orphan in a container without an init process stays one. */
function isZombie(pid: number): boolean {
  if (process.platform !== 'linux') return false
  try {
    return /\) Z [^)]*$/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

/** Waits for a process to end. @returns false when it still runs after `withinMs`. */
export async function waitForExit(pid: number, withinMs: number): Promise<boolean> {
  const deadline = Date.now() + withinMs
  while (isAlive(pid)) {
    if (Date.now() > deadline) return false
    await delay(10)
  }
  return true
}

/** Reads the last lines of a log file, at most 2,000 bytes; empty when there is none. */
export function readLogTail(path: string): string {
  let file: number
  try {
    file = openSync(path, 'r')
  } catch {
    return ''
  }
  try {
    const { size } = fstatSync(file)
    const bytes = Buffer.alloc(Math.min(size, LOG_TAIL_BYTES))
    readSync(file, bytes, 0, bytes.length, size - bytes.length)
    return bytes.toString('utf8').trim()
  } finally {
    closeSync(file)
  }
}

/**
 * Returns the environment for a child process, without Node's options: a debugger,
 * coverage or a test runner must not affect it.
 */
export function cleanEnvironment(extra: Record<string, string> = {}): NodeJS.ProcessEnv {
  const { NODE_OPTIONS: _options, NODE_V8_COVERAGE: _coverage, ...rest } = process.env
  return { ...rest, ...extra }
}
