export type FileChunk = {
  body: string
  lines: number
  /** Of the file. */
  bytes: number
}

/** Small enough for visible progress, and far below the service's limit. */
const linesMax = 2_000
const charactersMax = 8_000_000

/** Reads a file of lines in chunks: it is never in memory as a whole. */
export async function* splitIntoChunks(file: Blob): AsyncGenerator<FileChunk> {
  const encoder = new TextEncoder()
  const reader = file.stream().pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  let lines: string[] = []
  let characters = 0
  const takeChunk = (): FileChunk => {
    const body = lines.join('')
    const chunk = { body, lines: lines.length, bytes: encoder.encode(body).length }
    lines = []
    characters = 0
    return chunk
  }
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    const completeLines = (rest + read.value).split(/(?<=\n)/)
    rest = completeLines.at(-1)!.endsWith('\n') ? '' : completeLines.pop()!
    for (const line of completeLines) {
      if (lines.length >= linesMax || characters + line.length > charactersMax) {
        if (lines.length > 0) yield takeChunk()
      }
      lines.push(line)
      characters += line.length
    }
  }
  if (rest !== '') lines.push(rest)
  if (lines.length > 0) yield takeChunk()
}
