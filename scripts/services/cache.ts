import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'

/** Where this user keeps what can be had again: the cache of the home folder, else of the data. */
export function cacheDirs(dataDir: string): string[] {
  const { XDG_CACHE_HOME } = process.env
  const own = XDG_CACHE_HOME || join(homedir(), '.cache')
  return [join(own, 'memory-vault'), join(dataDir, 'cache')]
}

/**
 * Makes something large once, in the first of some folders that can be written.
 * It is made beside its final place and then renamed, so it is there whole or
 * not at all, and several processes may do so at once.
 *
 * @param name says everything the content depends on: whatever has this name is believed.
 * @param build fills an empty folder, whose child `made` becomes the result.
 * @returns the path; at once when one of the folders has it.
 * @throws the last failure when none of the folders would do.
 */
export async function getOrBuildCached(
  dirs: readonly string[],
  name: string,
  build: (work: string) => Promise<void>,
): Promise<string> {
  const known = dirs.map(dir => join(dir, name)).find(path => existsSync(path))
  if (known) return known

  const path = join(await firstWritableDir(dirs), name)
  const work = await mkdtemp(`${path}-`)
  try {
    await build(work)
    await rename(join(work, 'made'), path)
  } catch (error) {
    // Another process may have finished first; what it made is as good.
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
