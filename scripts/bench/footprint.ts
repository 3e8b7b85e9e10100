import { existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { report } from '#scripts/bench/measure.ts'

type LockedPackage = { dev?: boolean; devOptional?: boolean; link?: boolean }

const root = fileURLToPath(new URL('../..', import.meta.url))
const blockBytes = 512

/** The folders that `npm ci --omit=dev` installs here; those of other platforms are not there. */
function productionFolders(): string[] {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, LockedPackage>
  }
  return Object.entries(lock.packages)
    .filter(([path, { dev, devOptional, link }]) => path && !dev && !devOptional && !link)
    .map(([path]) => join(root, path))
    .filter(path => existsSync(path))
}

/** Bytes on disk of a package, those nested in it apart. */
function bytesOf(folder: string): number {
  return readdirSync(folder, { withFileTypes: true })
    .filter(({ name }) => name !== 'node_modules')
    .reduce((sum, entry) => {
      const path = join(folder, entry.name)
      return sum + (entry.isDirectory() ? bytesOf(path) : lstatSync(path).blocks * blockBytes)
    }, 0)
}

const packages = productionFolders()
  .map(path => ({ path: path.slice(root.length), megabytes: bytesOf(path) / 1e6 }))
  .toSorted((one, other) => other.megabytes - one.megabytes)
for (const { path, megabytes } of packages.slice(0, 5)) report(path, megabytes, { unit: 'MB' })
const megabytes = packages.reduce((sum, one) => sum + one.megabytes, 0)
report('a production install', megabytes, { unit: 'MB', bar: { most: 150 } })
report('packages of a production install', packages.length, { bar: { most: 200 } })
