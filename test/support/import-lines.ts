import { Losses } from '#api/import/draft.ts'
import { formats } from '#api/import/formats.ts'

/** A line of an upload that a format makes. */
export type Line = {
  content: string
  role: string
  timestamp?: string
  metadata?: Record<string, unknown>
}

/** Reads whole texts, each a file of its own, by a format. */
export async function readFromWhole(name: string, ...texts: string[]) {
  const losses = new Losses()
  const lines: Line[] = []
  const strangers: unknown[] = []
  const files = texts.map((text, index) => ({
    name: `${index}.json`,
    async *open() {
      yield Buffer.from(text)
    },
  }))
  for await (const { text } of formats[name]!.read(files, losses, value => strangers.push(value)))
    lines.push(JSON.parse(text) as Line)
  const lost = Object.fromEntries(losses.list().map(({ what, count }) => [what, count]))
  return { lines, lost, strangers }
}
