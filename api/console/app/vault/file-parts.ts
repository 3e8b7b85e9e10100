export type FilePart = {
  body: string
  lines: number
  /** Of the file. */
  bytes: number
}

/** Small enough that progress is seen, and far below what the service takes at once. */
const linesMax = 2_000
const charactersMax = 8_000_000

/** A file of lines in parts; the whole of it is never in memory. */
export async function* partsOf(file: Blob): AsyncGenerator<FilePart> {
  const encoder = new TextEncoder()
  const reader = file.stream().pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  let lines: string[] = []
  let characters = 0
  const part = (): FilePart => {
    const body = lines.join('')
    const made = { body, lines: lines.length, bytes: encoder.encode(body).length }
    lines = []
    characters = 0
    return made
  }
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    const pieces = (rest + read.value).split(/(?<=\n)/)
    rest = pieces.at(-1)!.endsWith('\n') ? '' : pieces.pop()!
    for (const line of pieces) {
      if (lines.length >= linesMax || characters + line.length > charactersMax) {
        if (lines.length > 0) yield part()
      }
      lines.push(line)
      characters += line.length
    }
  }
  if (rest !== '') lines.push(rest)
  if (lines.length > 0) yield part()
}
