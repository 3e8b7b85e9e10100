import { trimEndOf } from '#api/import/trim-end.ts'
import type { Draft } from '#api/import/draft.ts'
import type { ExportFile } from '#api/import/export-files.ts'
import { addMilliseconds, asText, asTime } from '#api/import/formats/fields.ts'
import { toLines, type Format } from '#api/import/formats/format.ts'
import { splitFrontMatter, type FrontMatter } from '#api/import/formats/front-matter.ts'
import { isHidden, readText } from '#api/import/formats/text-files.ts'

/** A note up to this length is one memory, a longer one a memory for each of its headings. */
const noteCharactersMax = 2000

const isNote = (name: string): boolean =>
  /\.(?:md|markdown)$/i.test(name) && !/\.excalidraw\.md$/i.test(name) && !isHidden(name)

type NotesFormat = Pick<Format, 'product' | 'file' | 'missing'> & {
  source: string
  recognizesText(name: string, text: string): boolean
  /** Takes what the program has a form of its own for out of a note. @returns these, and the rest */
  takeFacts?(body: string): { facts: Omit<Draft, 'timestamp'>[]; rest: string }
}

/** A format of folders of Markdown, with front matter or without. */
function notesFormat({ source, recognizesText, takeFacts, ...format }: NotesFormat): Format {
  return {
    ...format,
    isExportFile: isNote,
    recognizes: () => false,
    recognizesText: (name, text) => isNote(name) && recognizesText(name, text),
    async *read(files, losses, onStranger) {
      for (const file of files) {
        const text = await readText(file)
        if (text === undefined) losses.add('notes of more than 8 MiB')
        else if (text.includes('\0')) onStranger(file.name)
        else {
          const { fields, body } = splitFrontMatter(text, losses)
          const { facts, rest } = takeFacts?.(body) ?? { facts: [], rest: body }
          const about = describe(file, fields, source)
          const own = rest.trim() === '' ? [] : sectionsOf(rest)
          if (own.length + facts.length === 0) losses.add('notes without text')
          const drafts = [
            ...own.map(section => toDraft(section, about)),
            ...facts.map(({ content, metadata }) => ({
              content: `${about.metadata.title}: ${content}`,
              metadata: { ...about.metadata, ...metadata },
            })),
          ]
          // A millisecond apart, so that they stay in order.
          const inOrder = drafts.map((draft, index) => ({
            ...draft,
            timestamp: addMilliseconds(about.timestamp, index),
          }))
          yield* toLines(inOrder, losses)
        }
      }
    },
  }
}

/** The fields in which note programs keep the time of a note, the best first. */
const timesWritten = ['created', 'created_at', 'date created', 'date', 'timestamp', 'day']
const timesChanged = ['updated', 'updated_at', 'modified', 'date modified', 'last_modified']

/**
 * What all memories of a note have: the time that its front matter or its name tells (as daily notes have it), else that of
 * its last change; its title, path, and the other fields.
 */
function describe(file: ExportFile, fields: FrontMatter, source: string) {
  const name = file.name
    .split('/')
    .at(-1)!
    .replace(/\.\w+$/, '')
  const day = /(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)/.exec(name)?.[0]
  const lower = new Map(
    Object.entries(fields).map(([field, value]) => [field.toLowerCase(), value]),
  )
  const timesOf = (names: readonly string[]) => names.map(field => lower.get(field))
  const { title: given, ...others } = fields
  const kept = Object.entries(others)
    .filter(([field]) => !isTime(field.toLowerCase()))
    .map(([field, value]) => [ownFields.has(field) ? `note_${field}` : field, value])
  const title = asText(given) ?? name
  return {
    timestamp: asTime(...timesOf(timesWritten), day, ...timesOf(timesChanged), file.modified),
    metadata: { source, document: file.name, title, ...Object.fromEntries(kept) },
  }
}

/** Metadata that is not of the note's front matter. */
const ownFields = new Set(['source', 'document', 'heading', 'kind', 'category', 'origin'])

const isTime = (field: string): boolean =>
  timesWritten.includes(field) || timesChanged.includes(field)

type Section = { heading: string | undefined; text: string }

/** The sections of a long note, by its headings outside of code; a short note is one. */
function sectionsOf(body: string): Section[] {
  const text = body.trim()
  if (text.length <= noteCharactersMax) return [{ heading: undefined, text }]
  const sections: { heading: string | undefined; lines: string[] }[] = []
  let fence: string | undefined
  for (const line of text.split(/\r?\n/)) {
    const mark = /^\s{0,3}(`{3,}|~{3,})/.exec(line)?.[1]
    if (mark && fence === undefined) fence = mark
    else if (mark && mark.startsWith(fence!)) fence = undefined
    const title = fence === undefined ? /^#{1,6}[ \t]+(.*)$/.exec(line)?.[1] : undefined
    const heading = title === undefined ? undefined : trimEndOf(title, ' \t#')
    if (heading !== undefined || sections.length === 0) sections.push({ heading, lines: [line] })
    else sections.at(-1)!.lines.push(line)
  }
  return sections
    .map(({ heading, lines }) => ({ heading, text: lines.join('\n').trim() }))
    .filter(section => section.text.replace(/^#.*$/m, '').trim() !== '' || !section.heading)
}

/** A section with the title of its note before it, where it does not say it itself. */
function toDraft({ heading, text }: Section, about: ReturnType<typeof describe>): Draft {
  const { title } = about.metadata
  return {
    content: text.includes(title) ? text : `${title}\n\n${text}`,
    metadata: { ...about.metadata, heading },
  }
}

/** Folders of Markdown, such as the vaults of Obsidian. */
export const markdown = notesFormat({
  product: 'Markdown notes (Obsidian)',
  source: 'markdown',
  file: 'the folder of the notes, one note, or a zip of them',
  missing:
    'pictures and other attachments, drawings and canvases, comments of plug-ins; links stay as they are written',
  recognizesText: () => true,
})

/** The notes of Basic Memory, whose observations are a memory each: `- [habit] I bake on Saturdays #bread (since spring)`. */
export const basicMemory = notesFormat({
  product: 'Basic Memory',
  source: 'basic-memory',
  file: 'the folder of a project (by default ~/basic-memory), one note, or a zip of them',
  missing: 'its index and the history of a note; relations stay as the lines that they are',
  recognizesText: (_, text) =>
    /^permalink:/m.test(/^\uFEFF?---\r?\n[^]*?\r?\n---/.exec(text)?.[0] ?? ''),
  takeFacts(body) {
    const facts: Omit<Draft, 'timestamp'>[] = []
    const rest = body.replaceAll(
      /^[ \t]*-[ \t]+\[([^\][\n]{2,})\][ \t]+(?!\()(\S.*)$/gm,
      (_, category: string, content: string) => {
        facts.push({ content: content.trim(), metadata: { kind: 'observation', category } })
        return ''
      },
    )
    return {
      facts,
      rest: rest
        .replaceAll(/\n{3,}/g, '\n\n')
        .replace(/^#+[ \t]+Observations[ \t]*\n\s*(?=#|$(?![^]))/m, ''),
    }
  },
})
