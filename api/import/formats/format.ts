import type { Draft, ImportLine, Losses } from '#api/import/draft.ts'
import type { ExportFile } from '#api/import/export-files.ts'
import { asList, isObject, type Fields } from '#api/import/formats/fields.ts'
import { readJsonValues } from '#api/import/json-values.ts'
import { toUploadLines } from '#api/import/upload-line.ts'

/** A kind of export that can be imported. */
export type Format = {
  /** How the product is called. */
  product: string
  /** Which files of a folder or archive are read. */
  isExportFile(name: string): boolean
  /** What to give to the importer. */
  file: string
  /** What no import of this format has. */
  missing: string
  /** Whether a JSON value is of this format, to suggest it for a file that was taken for another. */
  recognizes(value: Fields): boolean
  /** Whether a file that is no JSON is of this format, by its path and its beginning. */
  recognizesText?(name: string, text: string): boolean
  /** @param onStranger is called with each value that is not of this format */
  read(
    files: readonly ExportFile[],
    losses: Losses,
    onStranger: (value: unknown) => void,
  ): AsyncGenerator<ImportLine>
}

/** Reads the values of one export in the order of the file. */
type DraftReader = {
  /** The memories of a value that the format recognizes. */
  drafts(value: Fields): Iterable<Draft>
  /** What could not be decided before all values were read. */
  end?(): Iterable<Draft>
}

type JsonFormat = Omit<Format, 'read'> & {
  /** Fields of an enclosing object whose arrays hold the values. */
  lists: readonly string[]
  open(losses: Losses): DraftReader
}

/** A format of JSON files: an array of values, an object that encloses one, or JSON lines. */
export const jsonFormat = ({ lists, open, ...format }: JsonFormat): Format => ({
  ...format,
  async *read(files, losses, onStranger) {
    const reader = open(losses)
    for (const file of files) {
      for await (const value of readJsonValues(file.open(), file.name)) {
        for (const found of unwrap(value, lists, format.recognizes)) {
          if (isObject(found) && format.recognizes(found))
            yield* toLines(reader.drafts(found), losses)
          else onStranger(found)
        }
      }
    }
    yield* toLines(reader.end?.() ?? [], losses)
  },
})

/** Returns a value of the format itself, or the elements of the arrays of an object around them. */
function unwrap(
  value: unknown,
  lists: readonly string[],
  recognizes: (value: Fields) => boolean,
): readonly unknown[] {
  if (!isObject(value) || recognizes(value)) return [value]
  const inner = lists.flatMap(name => asList(value[name]))
  return inner.length > 0 ? inner : [value]
}

export function* toLines(drafts: Iterable<Draft>, losses: Losses): Generator<ImportLine> {
  for (const draft of drafts) yield* toUploadLines(draft, losses)
}
