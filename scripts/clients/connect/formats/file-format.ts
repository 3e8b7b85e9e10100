/** A value of a configuration file. */
export type Value = string | boolean | Value[] | { [name: string]: Value }

/** Names that lead to a value, from the top of a file. */
export type Path = readonly string[]

/** The file is written in a way that this command does not change; nothing was touched. */
export class FormatError extends Error {
  override readonly name = 'FormatError'
}

/**
 * Reads and changes single values in the text of a configuration file; comments, order and all other
 * settings stay as they are. All functions throw FormatError for text that they cannot change safely.
 */
export type FileFormat = {
  /** The text of a value as it stands in the file; undefined where there is none. */
  find(text: string, at: Path): string | undefined
  /** The file with a value in place of what stood at the path, or added where nothing did. */
  set(text: string, at: Path, raw: string): string
  /** The file without a value; objects on the way that are empty then go too, but for the first `kept` names. */
  remove(text: string, at: Path, kept: number): string
  /** A value as the file writes it. */
  write(value: Value, at: Path): string
  /** What a text found in the file means. */
  read(raw: string): unknown
  /** Whether two texts mean the same. */
  isSame(one: string, other: string): boolean
}

/** How many leading names of a path lead to something in the file. */
export function presentDepth(format: FileFormat, text: string, at: Path): number {
  let depth = 0
  while (depth < at.length && format.find(text, at.slice(0, depth + 1)) !== undefined) depth++
  return depth
}
