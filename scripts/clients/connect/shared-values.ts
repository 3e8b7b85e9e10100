import type { Value } from '#api/client/programs/programs.ts'
import type { Setting } from '#scripts/clients/connect/client.ts'
import { FormatError, type Path } from '#scripts/clients/connect/formats/file-format.ts'

/** A value of several parts, of which one is ours and others may be a person's. */
export type SharedValue = {
  /** The parts of the present value; none where it is missing. */
  read(present: unknown): Value[]
  write(parts: Value[]): Value
  isOurs(part: Value): boolean
}

/** Makes the setting that adds our part behind those of the person, in place of the one that was ours before. */
export function sharedSetting(
  at: Path,
  { read, write, isOurs }: SharedValue,
  ours: Value,
): Setting {
  const othersOf = (present: unknown): Value[] => read(present).filter(part => !isOurs(part))
  return {
    at,
    value: present => write([...othersOf(present), ours]),
    ownPartOf: present => {
      const others = othersOf(present)
      return others.length > 0 ? write(others) : undefined
    },
  }
}

/** Headers as `Name: value` in one text, with a separator between them. */
export const headerLines = (separator: string): SharedValue => ({
  read: present =>
    (typeof present === 'string' ? present.split(separator) : []).filter(
      line => line.trim() !== '',
    ),
  write: lines => (lines as string[]).join(separator),
  isOurs: line => (line as string).trimStart().toLowerCase().startsWith('x-memory-key:'),
})

/** A list of MCP servers as JSON in a variable. */
export const serverList = (variable: string): SharedValue => ({
  read(present) {
    if (typeof present !== 'string' || present === '') return []
    try {
      return JSON.parse(present) as Value[]
    } catch {
      throw new FormatError(`${variable} is not JSON`)
    }
  },
  write: servers => JSON.stringify(servers),
  isOurs: server => (server as { info?: { id?: string } }).info?.id === 'memory',
})
