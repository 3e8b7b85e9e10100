import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { cp, mkdir, readFile, rename, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { cacheDirs, getOrBuildCached } from '#scripts/services/cache.ts'

/** What `npm ci` reads. */
const installFiles = ['package.json', 'package-lock.json', 'scripts/runtime']

/** Packages kept for other commits, each some hundred megabytes. */
const cacheName = (lock: Buffer): string =>
  `bench-packages-${createHash('sha256').update(lock).digest('hex').slice(0, 12)}`

/**
 * Checks a commit out into a folder as a worktree of the repository, with its packages installed. Those of one lock file
 * are installed once for all runs.
 *
 * @param folder missing yet
 * @returns a function that removes the worktree.
 */
export async function checkOut(
  repository: string,
  commit: string,
  folder: string,
  signal: AbortSignal,
): Promise<() => Promise<void>> {
  await run(
    'git',
    ['-C', repository, 'worktree', 'add', '--detach', '--force', folder, commit],
    signal,
  )
  const removeWorktree = async (): Promise<void> => {
    await run('git', ['-C', repository, 'worktree', 'remove', '--force', folder])
  }
  try {
    await symlink(await findPackages(repository, folder, signal), join(folder, 'node_modules'))
    return removeWorktree
  } catch (error) {
    await removeWorktree()
    throw error
  }
}

/** Returns the `node_modules` of this state if the lock files are equal, else one of the cache. */
async function findPackages(
  repository: string,
  folder: string,
  signal: AbortSignal,
): Promise<string> {
  const [own, lock] = await Promise.all(
    [repository, folder].map(root => readFile(join(root, 'package-lock.json'))),
  )
  const ownPackages = join(repository, 'node_modules')
  if (own!.equals(lock!) && existsSync(ownPackages)) return ownPackages
  const dirs = cacheDirs(join(repository, '.vault'))
  const installed = await getOrBuildCached(dirs, cacheName(lock!), async work => {
    const install = join(work, 'install')
    await mkdir(install)
    for (const file of installFiles)
      await cp(join(folder, file), join(install, file), { recursive: true })
    await run(
      'npm',
      ['ci', '--prefix', install, '--no-audit', '--no-fund', '--prefer-offline'],
      signal,
    )
    await rename(install, join(work, 'made'))
  })
  return join(installed, 'node_modules')
}

/** Runs a program to its end. @returns what it printed. @throws Error with its messages when it fails. */
export function run(
  program: string,
  args: readonly string[],
  signal?: AbortSignal,
  options: { cwd?: string; env?: Record<string, string> } = {},
): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { ...options, ...(signal && { signal }), stdio: 'pipe' })
    let printed = ''
    let messages = ''
    child.stdout.setEncoding('utf8').on('data', piece => (printed += piece))
    child.stderr.setEncoding('utf8').on('data', piece => (messages += piece))
    child.once('error', reject)
    child.once('close', code => {
      if (code === 0) resolve(printed)
      else reject(new Error(`${program} ${args.join(' ')} ended with ${code}: ${messages}`))
    })
  })
}

/** Removes a folder with all that is in it. */
export const removeFolder = (folder: string): Promise<void> =>
  rm(folder, { recursive: true, force: true })
