import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { writePrivateFile } from '#scripts/private-file.ts'
import { readRunningServices } from '#scripts/services/services.ts'

type Environment = Record<string, string | undefined>

export type EmbeddedSecrets = { MASTER_KEY: string; KEY_PEPPER: string }

/** Where the embedded services keep their data. */
export const resolveDataDir = (env: Environment): string =>
  resolve(env.DATA_DIR?.trim() || '.vault')

const secretsPath = (dataDir: string): string => join(dataDir, 'secrets.json')

/**
 * The secrets of an embedded vault, made at its first start and kept beside its data: without them no
 * key of this vault can be looked up again.
 */
export function loadOrCreateSecrets(dataDir: string): EmbeddedSecrets {
  const file = secretsPath(dataDir)
  if (existsSync(file)) return JSON.parse(readFileSync(file, 'utf8')) as EmbeddedSecrets
  const secrets = {
    MASTER_KEY: randomBytes(32).toString('hex'),
    KEY_PEPPER: randomBytes(32).toString('base64url'),
  }
  writePrivateFile(file, JSON.stringify(secrets))
  return secrets
}

/**
 * The environment of the embedded services that run now, for scripts that work beside them.
 *
 * @returns undefined when the environment names its own databases, or none are running.
 */
export function embeddedEnvironment(env: Environment): Environment | undefined {
  const dataDir = resolveDataDir(env)
  if (env.DATABASE_URL || !existsSync(secretsPath(dataDir))) return undefined
  const services = readRunningServices(dataDir)
  if (!services) return undefined
  const { databaseUrl: DATABASE_URL, mongodbUri: MONGODB_URI } = services
  return { ...loadOrCreateSecrets(dataDir), DATABASE_URL, MONGODB_URI, ...env }
}
