import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chown, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Refusal } from '#shared/core/errors.ts'
import type { PostgresBinaries, RunAsUser } from './postgres-binaries.ts'
import { cleanEnvironment } from './process.ts'

const execFileAsync = promisify(execFile)

/** The same collation on all platforms; only Linux has the locale C.UTF-8. */
const localeFlags =
  process.platform === 'linux'
    ? ['--locale=C.UTF-8']
    : ['--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8']

/** One server: its folders, its programs and the user they run as. */
export type PostgresInstallation = {
  home: string
  data: string
  logFile: string
  runAs: RunAsUser | undefined
  binaries: PostgresBinaries
}

/**
 * Returns the database password, created with the data. Its file belongs to the user that runs initdb.
 *
 * @throws Refusal `conflict` when there is data and no password.
 */
export async function ensurePassword({ home, data, runAs }: PostgresInstallation): Promise<string> {
  const file = join(home, 'password')
  const known = await readFile(file, 'utf8').catch(() => '')
  // An incomplete password is left only by a start that ended before it created the data.
  if (existsSync(data)) {
    if (known.trim()) return known.trim()
    throw new Refusal(
      'conflict',
      `${file} is empty or missing, and ${data} was made with the password in it`,
      'Put it back from a backup, or choose another DATA_DIR to begin anew.',
    )
  }

  const password = randomBytes(24).toString('hex')
  await writeFile(file, `${password}\n`, { mode: 0o600 })
  if (runAs) {
    await chown(home, runAs.uid, runAs.gid)
    await chown(file, runAs.uid, runAs.gid)
  }
  return password
}

/** Creates the data folder next to its final place and renames it, so it is never incomplete. */
export async function initializeDataDir(
  installation: PostgresInstallation,
  forTests: boolean,
): Promise<void> {
  const { home, data, runAs, binaries } = installation
  const work = join(home, 'data.new')
  // An initdb whose launcher was killed may still be writing for a moment.
  await rm(work, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  await mkdir(work, { mode: 0o700 })
  if (runAs) await chown(work, runAs.uid, runAs.gid)

  const flags = [
    '--username=vault',
    '--pwfile=../password',
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    ...localeFlags,
    '--no-instructions',
    ...(forTests ? ['--no-sync'] : []),
  ]
  try {
    await execFileAsync(
      binaries.initdb,
      ['-D', dataDirArgument(runAs, work), ...flags],
      spawnOptions(runAs, work),
    )
  } catch (error) {
    const { stderr = '', message } = error as Error & { stderr?: string }
    throw new Refusal(
      'unavailable',
      `initdb failed: ${stderr.trim() || message}`,
      'Free disk space, or choose another DATA_DIR',
      error,
    )
  }
  await rename(work, data)
}

/**
 * Returns the path by which a server opens its data folder. A substitute user may not
 * traverse a private parent folder, so the server starts inside the data folder
 * and opens `/proc/self/cwd`.
 */
export function dataDirArgument(as: RunAsUser | undefined, data: string): string {
  return as && process.platform === 'linux' ? '/proc/self/cwd' : data
}

export function spawnOptions(as: RunAsUser | undefined, cwd: string) {
  return { cwd, ...as, env: cleanEnvironment({ LC_MESSAGES: 'C' }) }
}
