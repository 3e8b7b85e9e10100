import type { VaultClient } from '../client.ts'
import { byteLength, createQueue, deleteRows, listRows, putTexts, toTexts } from './long-texts.ts'
import type { LongText, TextRow } from './long-texts.ts'
import { CommandFault, isBelow, isRoot, listDirectory, readPath } from './memory-paths.ts'

/** The commands of the tool, as the SDK types them. */
type View = { path: string; view_range?: number[] | null }
type Create = { path: string; file_text: string }
type Replace = { path: string; old_str: string; new_str?: string }
type Insert = { path: string; insert_line: number; insert_text: string }
type Delete = { path: string }
type Rename = { old_path: string; new_path: string }

/** Handlers for `betaMemoryTool` of `@anthropic-ai/sdk`. */
export type VaultMemoryHandlers = {
  view(command: View): Promise<string>
  create(command: Create): Promise<string>
  str_replace(command: Replace): Promise<string>
  insert(command: Insert): Promise<string>
  delete(command: Delete): Promise<string>
  rename(command: Rename): Promise<string>
}

type File = { path: string; text: string; known: LongText }

const prefix = 'file_'
/** Metadata of all files, since a filter cannot ask for the beginning of a path. */
const tree = { file_tree: 'memories' }
const linesMax = 999_999

/**
 * The files of Anthropic's memory tool (`memory_20250818`) in a vault: `betaMemoryTool(vaultMemory(vault))`.
 * A file is memories of the core with its path as metadata (`file_path`), so that searches and blocks find what
 * it says. Directories are what the paths of files say: one without a file does not exist, but `/memories`.
 * The last of two writers of a file counts. Storing needs a card on file, as uploads do.
 *
 * Each handler answers in the words of the tool's documentation. A fault of the model is thrown as `CommandFault`, of
 * which the SDK makes a result with `is_error`; what the service refuses is a `VaultError`.
 */
export function vaultMemory(vault: VaultClient): VaultMemoryHandlers {
  const readFiles = async (path?: string): Promise<{ files: File[]; rows: TextRow[] }> => {
    const rows = await listRows(vault, { ...tree, ...(path !== undefined && { file_path: path }) })
    const files = toTexts(prefix, rows).map(known => ({
      path: String(known.metadata.file_path),
      text: known.data === undefined ? known.text : (JSON.parse(known.data) as string),
      known,
    }))
    return { files, rows }
  }

  /** @throws CommandFault where there is none, a directory included */
  const openFile = async (path: string) => {
    const { files, rows } = await readFiles(readPath(path))
    const file = files[0]
    if (!file) {
      throw new CommandFault(`The path ${path} does not exist. Please provide a valid path.`)
    }
    return { ...file, rows }
  }

  /** Stores files in one upload, and then removes what was there before: one that breaks off loses nothing. */
  const write = async (
    files: readonly { path: string; text: string; known?: LongText }[],
    before: readonly TextRow[] = [],
  ) => {
    const texts = files.map(({ path, text, known }) => ({
      ...known,
      metadata: { ...tree, file_path: path },
      text,
      data: undefined,
    }))
    try {
      await putTexts(vault, prefix, texts, before)
    } catch (error) {
      if (error instanceof RangeError) throw new CommandFault(error.message)
      throw error
    }
  }

  return answering({
    async view({ path: given, view_range: range }) {
      const path = readPath(given)
      const { files } = await readFiles(isRoot(path) ? undefined : path)
      const file = files.find(one => one.path === path)
      if (file) return showFile(given, file.text, range)
      const all = isRoot(path) ? files : (await readFiles()).files
      if (!isRoot(path) && !all.some(one => isBelow(one.path, path))) {
        throw new CommandFault(`The path ${given} does not exist. Please provide a valid path.`)
      }
      return listDirectory(path, new Map(all.map(one => [one.path, byteLength(one.text)])))
    },

    async create({ path: given, file_text: text }) {
      const path = readPath(given)
      const { files } = await readFiles()
      if (isRoot(path) || files.some(one => one.path === path || isBelow(one.path, path))) {
        throw new CommandFault(`File ${given} already exists`)
      }
      refuseBelowFile(path, files)
      await write([{ path, text }])
      return `File created successfully at: ${given}`
    },

    async str_replace({ path, old_str: old, new_str: replacement = '' }) {
      const { rows, ...file } = await openFile(path)
      const places = findAll(file.text, old)
      const lineAt = (place: number) => file.text.slice(0, place).split('\n').length
      if (places.length === 0) {
        throw new CommandFault(
          `No replacement was performed, old_str \`${old}\` did not appear verbatim in ${path}.`,
        )
      }
      if (places.length > 1) {
        const lines = [...new Set(places.map(lineAt))].join(', ')
        throw new CommandFault(
          `No replacement was performed. Multiple occurrences of old_str \`${old}\` in lines: ${lines}. Please ensure it is unique`,
        )
      }
      const [place] = places as [number]
      const text = file.text.slice(0, place) + replacement + file.text.slice(place + old.length)
      await write([{ ...file, text }], rows)
      const from = Math.max(1, lineAt(place) - 2)
      const to = lineAt(place) + replacement.split('\n').length + 1
      const snippet = numberLines(text.split('\n').slice(from - 1, to), from)
      return `The memory file has been edited. Here is the snippet showing the change (with line numbers):\n${snippet}`
    },

    async insert({ path, insert_line: at, insert_text: text }) {
      const { rows, ...file } = await openFile(path)
      const lines = file.text.split('\n')
      if (!Number.isInteger(at) || at < 0 || at > lines.length) {
        throw new CommandFault(
          `Invalid \`insert_line\` parameter: ${at}. It should be within the range of lines of the file: [0, ${lines.length}]`,
        )
      }
      lines.splice(at, 0, text.replace(/\n$/, ''))
      await write([{ ...file, text: lines.join('\n') }], rows)
      return `The file ${path} has been edited.`
    },

    async delete({ path: given }) {
      const path = readPath(given)
      if (isRoot(path)) {
        throw new CommandFault('Cannot delete the /memories directory itself')
      }
      const rows = (await readFiles()).rows.filter(row => isAtOrBelow(row, path))
      if (rows.length === 0) throw new CommandFault(`The path ${given} does not exist`)
      await deleteRows(vault, rows)
      return `Successfully deleted ${given}`
    },

    async rename({ old_path: givenOld, new_path: givenNew }) {
      const [from, to] = [readPath(givenOld), readPath(givenNew)]
      if (isRoot(from)) {
        throw new CommandFault('Cannot rename the /memories directory itself')
      }
      const { files, rows } = await readFiles()
      const moved = files.filter(({ path }) => path === from || isBelow(path, from))
      if (moved.length === 0) throw new CommandFault(`The path ${givenOld} does not exist`)
      if (isRoot(to) || files.some(({ path }) => path === to || isBelow(path, to))) {
        throw new CommandFault(`The destination ${givenNew} already exists`)
      }
      refuseBelowFile(to, files)
      if (isBelow(to, from)) {
        throw new CommandFault(`The destination ${givenNew} is in ${givenOld}`)
      }
      await write(
        moved.map(file => ({ ...file, path: to + file.path.slice(from.length) })),
        rows.filter(row => isAtOrBelow(row, from)),
      )
      return `Successfully renamed ${givenOld} to ${givenNew}`
    },
  })
}

/** The texts that each command must have: a model may leave one out. */
const texts: Record<keyof VaultMemoryHandlers, string[]> = {
  view: ['path'],
  create: ['path', 'file_text'],
  str_replace: ['path', 'old_str'],
  insert: ['path', 'insert_text'],
  delete: ['path'],
  rename: ['old_path', 'new_path'],
}

/**
 * The handlers, refusing a command without its texts. One command runs at a time: the SDK runs calls of one
 * answer together, and two edits of a file are both to stay.
 */
function answering(handlers: VaultMemoryHandlers): VaultMemoryHandlers {
  const inTurn = createQueue()
  const wrapped = Object.entries(texts).map(([name, fields]) => [
    name,
    async (command: Record<string, unknown>) => {
      const missing = fields.find(field => typeof command[field] !== 'string')
      if (missing) throw new CommandFault(`${name} needs the text \`${missing}\``)
      return await inTurn(() => handlers[name as 'view'](command as View))
    },
  ])
  return Object.fromEntries(wrapped) as VaultMemoryHandlers
}

const isAtOrBelow = ({ metadata }: TextRow, path: string): boolean =>
  metadata.file_path === path || isBelow(String(metadata.file_path), path)

/** A file has nothing below it. */
function refuseBelowFile(path: string, files: readonly { path: string }[]): void {
  const file = files.find(one => isBelow(path, one.path))
  if (file) throw new CommandFault(`The path ${file.path} is not a directory`)
}

function showFile(path: string, text: string, range: number[] | null | undefined): string {
  const lines = text.split('\n')
  if (lines.length > linesMax) {
    throw new CommandFault(`File ${path} exceeds maximum line limit of 999,999 lines.`)
  }
  const [first = 1, last = -1] = range ?? []
  const from = Math.max(1, first)
  const shown = lines.slice(from - 1, last === -1 ? undefined : Math.max(0, last))
  return `Here's the content of ${path} with line numbers:\n${numberLines(shown, from)}`
}

const numberLines = (lines: readonly string[], from: number): string =>
  lines.map((line, at) => `${String(from + at).padStart(6)}\t${line}`).join('\n')

/** Where a text stands in another; nowhere for an empty one. */
function findAll(text: string, wanted: string): number[] {
  const places: number[] = []
  if (wanted === '') return places
  for (let at = text.indexOf(wanted); at !== -1; at = text.indexOf(wanted, at + 1)) places.push(at)
  return places
}
