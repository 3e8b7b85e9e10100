import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { pipeline } from 'node:stream/promises'
import type { Piece } from '#api/import/documents/pieces.ts'
import type { Losses } from '#api/import/draft.ts'
import { Refusal, type RefusalReason } from '#shared/core/errors.ts'
import { refusal } from '#shared/core/refusal.ts'
import { withKeyedMutex } from '#shared/core/keyed-mutex.ts'

/** What one document may take. The wall clock ends a process that the CPU clock does not. */
export const documentLimits = {
  bytes: 64 * 1024 * 1024,
  cpuSeconds: 60,
  megabytes: 1_024,
  seconds: 100,
}

/** Documents that are read at once, of all accounts. */
const readersMax = 2
let nextReader = 0

/** How the reading of a document ended. */
export type ReadingEnd = {
  kind: string
  pages: number
  pieces: number
  left_out: ReturnType<Losses['list']>
}

/**
 * Reads a document in a process of its own, which has no environment, may write no file and start no program.
 *
 * @param account whose documents are read one after the other
 * @param document `takesPictures`: those that a model can describe are pieces, too
 * @throws Refusal `invalid`, `unsupported` as `readDocument`; `too-large` for one that takes more than its limits
 */
export function readInProcess(
  account: string,
  source: AsyncIterable<Uint8Array>,
  document: { name: string; mediaType: string; takesPictures?: boolean },
): Promise<{ pieces: Piece[]; end: ReadingEnd }> {
  const reader = `document reader ${nextReader++ % readersMax}`
  return withKeyedMutex(`documents of ${account}`, () =>
    withKeyedMutex(reader, () => read(source, document)),
  )
}

const program = new URL('../../import/documents/document-process.ts', import.meta.url).pathname

async function read(
  source: AsyncIterable<Uint8Array>,
  document: { name: string; mediaType: string; takesPictures?: boolean },
): Promise<{ pieces: Piece[]; end: ReadingEnd }> {
  const { cpuSeconds, megabytes, seconds } = documentLimits
  const process_ = spawn(
    process.execPath,
    [
      '--permission',
      '--allow-fs-read=*',
      '--allow-worker',
      program,
      JSON.stringify({ ...document, cpuSeconds, megabytes }),
    ],
    { env: {}, stdio: ['pipe', 'pipe', 'ignore'], timeout: seconds * 1000, killSignal: 'SIGKILL' },
  )
  const sending = pipeline(withinBytes(source), process_.stdin)
  sending.catch(() => process_.kill('SIGKILL'))
  const pieces: Piece[] = []
  let end: ReadingEnd | undefined
  for await (const text of createInterface({ input: process_.stdout })) {
    const line = JSON.parse(text) as {
      piece?: Piece
      end?: ReadingEnd
      refusal?: { reason: RefusalReason; message: string; hint?: string }
    }
    if (line.refusal)
      throw new Refusal(line.refusal.reason, line.refusal.message, line.refusal.hint)
    if (line.piece) pieces.push(line.piece)
    end = line.end ?? end
  }
  await sending
  if (!end) throw refusal('too-large', 'documentTooCostly', { name: document.name })
  return { pieces, end }
}

async function* withinBytes(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let bytes = 0
  for await (const chunk of source) {
    bytes += chunk.length
    if (bytes > documentLimits.bytes) throw refusal('too-large', 'documentTooLarge')
    yield chunk
  }
}
