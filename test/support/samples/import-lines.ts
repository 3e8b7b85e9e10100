import { Losses } from '#api/import/draft.ts'
import { formats } from '#api/import/formats.ts'

/** A line of an upload that a format makes. */
export type Line = {
  content: string
  role: string
  timestamp?: string
  metadata?: Record<string, unknown>
}

type Given = { name: string; text: string | Uint8Array; modified?: number }

/** Reads whole texts, each a file of its own, by a format. */
export const readFromWhole = (name: string, ...texts: string[]) =>
  readFromFiles(
    name,
    texts.map((text, index) => ({ name: `${index}.json`, text })),
  )

/** Reads files by a format. */
export async function readFromFiles(name: string, given: readonly Given[]) {
  const losses = new Losses()
  const lines: Line[] = []
  const strangers: unknown[] = []
  const files = given.map(({ text, ...file }) => ({
    ...file,
    async *open() {
      yield Buffer.from(text)
    },
  }))
  for await (const { text } of formats[name]!.read(files, losses, value => strangers.push(value)))
    lines.push(JSON.parse(text) as Line)
  const lost = Object.fromEntries(losses.list().map(({ what, count }) => [what, count]))
  return { lines, lost, strangers }
}
