import type { FileFormat, Path, Value } from '#scripts/clients/connect/formats/file-format.ts'

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

/** The service and the key that a client is to use; no slash at the end. */
export type Vault = { baseUrl: string; key: string }

/** A value that a file is to have, or how it follows from the one that is there. */
type Setting = { at: Path; value: Value | ((present: unknown) => Value) }

export type ConfigFile = { path: string; format: FileFormat; settings: Setting[] }

/** Reads a value back from a file that was written; undefined where there is none. */
export type ReadBack = (file: number, ...at: string[]) => unknown

/** A call to the service with what stands in the client's files. */
export type Proof = { kind: 'memory' | 'mcp'; url: string; headers: Record<string, string> }

/** A program that can be connected: which files it reads, and what they are to say. */
export type Client = {
  title: string
  files(vault: Vault, place: Place): ConfigFile[]
  proofs(read: ReadBack): Proof[]
  /** What is to be known or done beside the files. */
  notes: string[]
}

/** The header that carries a Memory Key beside a provider's own. */
export const memoryHeader = 'X-Memory-Key'

/** The name that the service has in the clients' files. */
export const serverName = 'memory'

export const bearer = ({ key }: Pick<Vault, 'key'>): { Authorization: string } => ({
  Authorization: `Bearer ${key}`,
})

export const mcpUrl = ({ baseUrl }: Vault): string => `${baseUrl}/mcp`

/** Proof that memory answers at a base URL, which may end in an API's version. */
export const proveMemory = (baseUrl: unknown, headers: unknown): Proof => ({
  kind: 'memory',
  url: `${String(baseUrl).replace(/\/v1(?:beta)?$/, '')}/v1/memory/stats`,
  headers: headers as Record<string, string>,
})

export const proveMcp = (url: unknown, headers: unknown): Proof => ({
  kind: 'mcp',
  url: String(url),
  headers: headers as Record<string, string>,
})

/**
 * Adds a header to a list of `Name: value` in one text, in place of one of its name.
 *
 * @param separator between headers
 */
export const withHeader =
  (name: string, value: string, separator: string) =>
  (present: unknown): string => {
    const others = (typeof present === 'string' ? present.split(separator) : []).filter(
      line =>
        line.trim() !== '' && !line.toLowerCase().trimStart().startsWith(`${name.toLowerCase()}:`),
    )
    return [...others, `${name}: ${value}`].join(separator)
  }

/** Reads a header from such a list. */
export const readHeader = (
  present: unknown,
  name: string,
  separator: string,
): Record<string, string> =>
  Object.fromEntries(
    String(present)
      .split(separator)
      .map(line => [
        line.slice(0, line.indexOf(':')).trim(),
        line.slice(line.indexOf(':') + 1).trim(),
      ])
      .filter(([found]) => found!.toLowerCase() === name.toLowerCase()),
  ) as Record<string, string>
