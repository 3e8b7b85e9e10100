import type { FileFormat, Path, Value } from '#scripts/clients/connect/formats/file-format.ts'
import type { Proof } from '#scripts/clients/connect/prove.ts'

/** Where a client keeps its configuration. */
export type Place = {
  env: Record<string, string | undefined>
  home: string
  platform: NodeJS.Platform
  /** Stands in for the client's own folder. */
  configDir: string | undefined
  /** Where the command runs. */
  cwd: string
}

/** What a client's key may do: `memory` for a program of one person, `users` for one that names its users. */
export type ClientRights = 'memory' | 'users'

/** The service and the key that a client uses, and what the key may do; no slash at the end. */
export type Vault = { baseUrl: string; key: string; rights: ClientRights }

/** How a program gets memory: its model calls go through the service, its hooks call it, or it has tools alone. */
export type Way = 'models' | 'plugin' | 'tools'

/** A value that a file gets, or how it follows from the present one. */
export type Setting = {
  at: Path
  value: Value | ((present: unknown) => Value)
  /** What is a person's own in a value that they have changed since; undefined where nothing is. */
  without?: (present: unknown) => Value | undefined
  /** The way of memory that it belongs to; the others add the tools of memory, and belong to all. */
  way?: Exclude<Way, 'tools'>
}

export type ConfigFile = {
  path: string
  format: FileFormat
  /** All that it may get. */
  settings: Setting[]
  /** Those that it gets; all, when missing. */
  written?: Setting[]
}

/** Reads a value back from a file that was written; undefined where there is none. */
type ReadBack = (file: number, ...at: string[]) => unknown

/** A program that can be connected: the files it reads and the settings they get. */
export type Client = {
  title: string
  /** It serves several people: its key is one for users, whom it names by X-Memory-User. */
  hasUsers?: true
  files(vault: Vault, place: Place): ConfigFile[]
  /** Why its model calls cannot go through the service, as things are; undefined where they can. */
  whyNoModels?(place: Place): string | undefined
  /** Calls to the service with what stands in the files. */
  proofs(read: ReadBack, rights: ClientRights): Proof[]
  /** What a person has to know or do besides; `rights` are those of the key that was written. */
  notes(vault: Vault): string[]
}

/** The header that carries a Memory Key next to a provider's own. */
export const memoryHeader = 'X-Memory-Key'

/** The name that the service has in the clients' files. */
export const serverName = 'memory'

export const bearer = (key: string): { Authorization: string } => ({
  Authorization: `Bearer ${key}`,
})
export const mcpUrl = ({ baseUrl }: Vault): string => `${baseUrl}/mcp`

/** Marks the settings that send model calls through the service. */
export const modelSettings = (settings: Setting[]): Setting[] =>
  settings.map(setting => ({ ...setting, way: 'models' }))
