import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findPythons } from '#test/support/start/python.ts'

/** Packages of a registry by their exact versions, such as `langgraph==1.2.24`. */
export type Pins = readonly string[]

/** Where packages were installed, or in one line why they could not be had. */
export type Installed = { folder: string } | { missing: string }

/** What the pinned packages depend on is taken as it was on this day, so that two runs install the same. */
const resolvedOn = '2026-11-28'
const uvVersion = '0.13.9'
const installMs = 300_000

/** Outside of the tree, kept between runs; `PROGRAMS_CACHE` moves it. */
const cache =
  process.env.PROGRAMS_CACHE ??
  join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'memory-vault', 'programs')

/** `env`, because the test runner puts its loaders into every Node process it sees start. */
const run = (
  command: string,
  args: readonly string[],
  options: { cwd?: string; env?: object } = {},
) =>
  promisify(execFile)('env', ['-u', 'NODE_OPTIONS', command, ...args], {
    timeout: installMs,
    ...options,
    env: { ...process.env, ...options.env },
  })

/**
 * Installs packages of PyPI into an environment of their own; its Python is `bin/python`. What they depend on and
 * do not load when they start, such as a library of gigabytes for models, may be left out.
 */
export async function installPython(pins: Pins, leftOut: Pins = []): Promise<Installed> {
  const python = (await findPythons()).find(({ version }) => Number(version.split('.')[1]) >= 10)
  if (!python) return { missing: 'this machine has no Python from 3.10 on' }
  const without = leftOut.map(name => `${name}; python_version < '3'`)
  return await once(['python', python.version, ...pins, ...without], async folder => {
    const uv = await once(['uv', python.version, uvVersion], async tools => {
      await run(python.command, ['-m', 'venv', tools])
      await run(join(tools, 'bin/python'), ['-m', 'pip', 'install', '-q', `uv==${uvVersion}`])
    })
    if ('missing' in uv) throw new Error(uv.missing)
    const install = (...args: string[]) => run(join(uv.folder, 'bin/python'), ['-m', 'uv', ...args])
    await install('venv', '-q', '--relocatable', '--python', python.command, folder)
    const at = [
      '--python',
      join(folder, 'bin/python'),
      '--exclude-newer',
      `${resolvedOn}T00:00:00Z`,
    ]
    writeFileSync(join(folder, 'overrides.txt'), without.join('\n'))
    const overrides = without.length > 0 ? ['--override', join(folder, 'overrides.txt')] : []
    await install('pip', 'install', '-q', ...at, ...overrides, ...pins)
  })
}

/** Installs packages of npm, without scripts of theirs, into `node_modules` of the folder. */
export const installNode = (pins: Pins): Promise<Installed> =>
  once(['node', ...pins], async folder => {
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'package.json'), '{"private":true,"type":"module"}')
    const quiet = ['--no-audit', '--no-fund', '--silent', '--ignore-scripts', '--legacy-peer-deps']
    await run('npm', ['install', ...quiet, '--before', resolvedOn, ...pins], { cwd: folder })
  })

/**
 * The folder of what was installed once; another process may do the same meanwhile. A registry that does not
 * answer and a version that was withdrawn are no fault of this project.
 */
async function once(key: Pins, install: (folder: string) => Promise<void>): Promise<Installed> {
  const name = createHash('sha256')
    .update([resolvedOn, ...key].join('\n'))
    .digest('hex')
    .slice(0, 16)
  const folder = join(cache, name)
  if (existsSync(folder)) return { folder }
  const making = `${folder}.${process.pid}`
  rmSync(making, { recursive: true, force: true })
  mkdirSync(cache, { recursive: true })
  try {
    await install(making)
    renameSync(making, folder)
  } catch (error) {
    rmSync(making, { recursive: true, force: true })
    if (existsSync(folder)) return { folder }
    return { missing: `${key.slice(1).join(' ')}: ${reasonOf(error)}` }
  }
  return { folder }
}

/** The line of a failed install that says most. */
function reasonOf(error: unknown): string {
  const { stderr = '', message = '' } = error as { stderr?: string; message?: string }
  const lines = (stderr || message).split('\n').filter(line => line.trim() !== '')
  const line =
    lines.find(one => /because|no solution|404|not found|ERR!/i.test(one)) ?? lines.at(-1)
  return (line ?? 'not installed').trim().slice(0, 200)
}
