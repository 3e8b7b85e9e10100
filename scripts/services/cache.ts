import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'

/** Returns the cache folders of this user, by preference: in the home folder, else in the data folder. */
export function cacheDirs(dataDir: string): string[] {
  const { XDG_CACHE_HOME } = process.env
  const userCache = XDG_CACHE_HOME || join(homedir(), '.cache')
  return [join(userCache, 'memory-vault'), join(dataDir, 'cache')]
}

/**
 * Builds a large folder once, in the first of `dirs` that is writable. It is
 * built next to its final place and then renamed, so it is never incomplete,
 * and several processes may call this at once.
 *
 * @param name must contain everything the content depends on: an existing entry is not verified.
 * @param build fills an empty folder, whose child `made` becomes the result.
 * @returns the path; immediately when one of `dirs` has the entry.
 * @throws the last failure when no folder is writable.
 */
export async function getOrBuildCached(
  dirs: readonly string[],
  name: string,
  build: (work: string) => Promise<void>,
): Promise<string> {
  const cached = dirs.map(dir => join(dir, name)).find(path => existsSync(path))
  if (cached) return cached

  const path = join(await firstWritableDir(dirs), name)
  const work = await mkdtemp(`${path}-`)
  try {
    await build(work)
    await rename(join(work, 'made'), path)
  } catch (error) {
    // Another process may have finished first; its result is the same.
    if (!existsSync(path)) throw error
  } finally {
    await rm(work, { recursive: true, force: true })
  }
  return path
}

async function firstWritableDir(dirs: readonly string[]): Promise<string> {
  let failure: unknown
  for (const dir of dirs) {
    try {
      await mkdir(dir, { recursive: true })
      await rm(await mkdtemp(join(dir, 'probe-')), { recursive: true })
      return dir
    } catch (error) {
      failure = error
    }
  }
  throw failure
}
