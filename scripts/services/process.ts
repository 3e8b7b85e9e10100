import { closeSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'

/** Told, in whole sentences, what takes long or was found. */
export type LineLogger = (line: string) => void

/** A database server that we look after, ours or given. */
export type DatabaseServer = {
  url: string
  /** Its first process, for who wants to see it killed; a given one is none of our business. */
  pid: number | undefined
  /** Resolves with what is known when it ends without having been told to. */
  unexpectedExit: Promise<string>
  /** Ends it and waits until its data is written out; a second call waits for the first. */
  stop(): Promise<void>
}

const LOG_TAIL_BYTES = 2_000

/** True while a process of this id runs, whoever owns it. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
  return !isZombie(pid)
}

/** In a container nobody may ever collect an orphan that has ended. */
function isZombie(pid: number): boolean {
  if (process.platform !== 'linux') return false
  try {
    return /\) Z [^)]*$/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

/** Waits for a process to end. @returns false when it has not within the time. */
export async function waitForExit(pid: number, withinMs: number): Promise<boolean> {
  const deadline = Date.now() + withinMs
  while (isAlive(pid)) {
    if (Date.now() > deadline) return false
    await delay(10)
  }
  return true
}

/** The last lines of a log file, at most 2,000 bytes; empty when there is none. */
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
 * The environment for a service of ours: Node's own options stay behind, or a
 * debugger, a coverage run or a test runner would reach into the service.
 */
export function cleanEnvironment(extra: Record<string, string> = {}): NodeJS.ProcessEnv {
  const { NODE_OPTIONS: _options, NODE_V8_COVERAGE: _coverage, ...rest } = process.env
  return { ...rest, ...extra }
}
