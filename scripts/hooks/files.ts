import { createHash, randomUUID } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'

/** The service that a program is connected to, as its file holds it. */
export type Connection = { base_url: string; key: string }

type Environment = Record<string, string | undefined>

/** The folder of the connections, one file for each program: they hold keys and are their owner's alone. */
export const connectionsFolder = (env: Environment = process.env, home = homedir()): string =>
  join(env.XDG_CONFIG_HOME || env.APPDATA || join(home, '.config'), 'memory-vault', 'hooks')

/** The folder of what is kept between calls: turns under way, exchanges that wait to be sent, the journal. */
export const stateFolder = (env: Environment = process.env, home = homedir()): string =>
  join(
    env.XDG_STATE_HOME || env.LOCALAPPDATA || join(home, '.local', 'state'),
    'memory-vault',
    'hooks',
  )

/** The programs that are connected. */
export const listClients = (): string[] => {
  try {
    return readdirSync(connectionsFolder())
      .filter(name => name.endsWith('.json'))
      .map(name => name.slice(0, -'.json'.length))
  } catch {
    return []
  }
}

/** @returns undefined for a program that is not connected. */
export function readConnection(client: string): Connection | undefined {
  const { base_url, key } = (readJson(join(connectionsFolder(), `${client}.json`)) ??
    {}) as Partial<Connection>
  return base_url && key ? { base_url: base_url.replace(/\/+$/, ''), key } : undefined
}

/** @returns undefined where there is no such file, or none of JSON. */
export function readJson(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch {
    return undefined
  }
}

/** Writes a file for its owner alone; a reader sees the old or the new content. */
export function writeJson(path: string, value: unknown): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const next = `${path}.${randomUUID()}`
  writeFileSync(next, JSON.stringify(value), { mode: 0o600 })
  renameSync(next, path)
}

export const digest = (...parts: string[]): string =>
  createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 40)
