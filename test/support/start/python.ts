import { execFile, spawn } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** A Python of this machine. */
export type Python = { command: string; version: string }

const places = [process.env.PYTHON, 'python3', '/usr/bin/python3'].filter(
  place => place !== undefined,
)

/** The Pythons from 3.9 on, each version once; `PYTHON` names one more. None: an empty list. */
export async function findPythons(): Promise<Python[]> {
  const found = new Map<string, Python>()
  for (const command of places) {
    if (command.includes('/') && !existsSync(command)) continue
    const version = await run(command, ['--version']).then(
      ({ stdout }) => stdout.trim().replace('Python ', ''),
      () => undefined,
    )
    const [major, minor] = (version ?? '').split('.').map(Number)
    if (major === 3 && minor! >= 9 && !found.has(version!)) {
      found.set(version!, { command, version: version! })
    }
  }
  return [...found.values()]
}

export const noPython = 'this machine has no Python from 3.9 on'

/** The outcome of one test of Python's `unittest`. */
type PythonOutcome = { test: string; outcome: 'passed' | 'failed' | 'skipped'; text: string }

export type PythonRun = { count: number; outcomes: PythonOutcome[]; output: string; code: number }

/**
 * Runs modules of Python's `unittest` by a `__main__` that prints a line of JSON for each test.
 *
 * @param cwd the folder of the package
 */
export async function runUnittest(
  { command }: Python,
  modules: readonly string[],
  { cwd, env }: { cwd: string; env: Record<string, string> },
): Promise<PythonRun> {
  const args = ['-B', '-m', 'tests', ...modules]
  const child = spawn(command, args, { cwd, env: { PATH: process.env.PATH, ...env } })
  const outcomes: PythonOutcome[] = []
  let count = 0
  let output = ''
  child.stderr.on('data', (data: Buffer) => (output += data.toString()))
  const ended = new Promise<number>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', code => resolve(code ?? 1))
  })
  for await (const line of createInterface({ input: child.stdout })) {
    if (!line.startsWith('{')) output += `${line}\n`
    else if (line.startsWith('{"count"')) ({ count } = JSON.parse(line) as { count: number })
    else outcomes.push(JSON.parse(line) as PythonOutcome)
  }
  return { count, outcomes, output, code: await ended }
}

/**
 * Builds the wheel of a package and installs it into a folder, with what this machine has.
 *
 * @returns why it cannot, where pip, setuptools or wheel are missing
 */
export async function installWheel(
  { command }: Python,
  source: string,
  target: string,
): Promise<string | undefined> {
  const tools = await run(command, ['-c', 'import setuptools, wheel, pip']).then(
    () => true,
    () => false,
  )
  if (!tools) return `${command} has no pip, setuptools and wheel`
  const env = { ...process.env, PIP_DISABLE_PIP_VERSION_CHECK: '1', PIP_ROOT_USER_ACTION: 'ignore' }
  const pip = (...args: string[]) =>
    run(command, ['-m', 'pip', ...args, '--quiet', '--no-deps', '--no-index'], { env })
  const wheels = join(target, 'wheels')
  await pip('wheel', '--no-build-isolation', '--wheel-dir', wheels, source)
  const [wheel] = readdirSync(wheels)
  await pip('install', '--target', target, join(wheels, wheel!))
  return undefined
}
