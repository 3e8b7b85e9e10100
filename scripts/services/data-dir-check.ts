import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { Refusal } from '#shared/core/errors.ts'

/** The files and folders of an installation in the order in which the first start makes them. */
const partPaths = {
  postgres: 'postgres/data',
  mongodb: 'mongodb/data',
  secrets: 'secrets.json',
} as const

/** A file in the data of PostgreSQL; that of MongoDB has some as soon as it is in use. */
const isThere: Record<keyof typeof partPaths, (path: string) => boolean> = {
  postgres: path => existsSync(join(path, 'PG_VERSION')),
  mongodb: path => existsSync(path) && readdirSync(path).length > 0,
  secrets: existsSync,
}

/**
 * Refuses to start on half an installation, such as half a restored backup: the missing part would be created
 * empty, and nothing that was stored would be found. A first start that was killed has no secrets, which are
 * created last, and starts.
 *
 * @param embedded which parts are in the data folder, not elsewhere by the environment
 * @param hasBeenReady a start has succeeded on this folder
 * @throws Refusal `conflict` naming what is missing.
 */
export function refuseHalfInstallation(
  dataDir: string,
  embedded: { secrets: boolean; postgres: boolean; mongodb: boolean },
  hasBeenReady: boolean,
): void {
  const parts = (Object.keys(partPaths) as (keyof typeof partPaths)[]).filter(
    part => embedded[part],
  )
  const present = parts.filter(part => isThere[part](join(dataDir, partPaths[part])))
  const missing = parts.filter(part => !present.includes(part))
  const isInUse = hasBeenReady || (present.includes('secrets') && present.length > 1)
  if (!isInUse || missing.length === 0) return
  const names = missing.map(part => join(dataDir, partPaths[part])).join(' and ')
  throw missingPartRefusal(names)
}

export const missingPartRefusal = (names: string): Refusal =>
  new Refusal(
    'conflict',
    `${names} is missing, and the rest of the installation is there`,
    'Put it back from the backup that the rest comes from, or choose another DATA_DIR to begin anew.',
  )
