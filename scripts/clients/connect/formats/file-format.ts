import type { Value } from '#api/client/programs/programs.ts'

/** Names that lead to a value, from the top of a file. */
export type Path = readonly string[]

/** The file is written in a way that this command does not change; nothing was touched. */
export class FormatError extends Error {
  override readonly name = 'FormatError'
}

/**
 * Reads and changes single values in the text of a configuration file. Comments, order and all other settings
 * stay as they are. All functions throw FormatError for a text that they cannot change safely.
 */
export type FileFormat = {
  /** The value at a path; undefined where there is none. */
  get(text: string, at: Path): unknown
  /** The text with a value at a path, in place of the one there. */
  set(text: string, at: Path, value: Value): string
  /** The text with what another text, `before`, has at a path; without a value there, it goes. */
  putBack(text: string, at: Path, before: string): string
}

export const lineEnd = (text: string): string => (text.includes('\r\n') ? '\r\n' : '\n')
