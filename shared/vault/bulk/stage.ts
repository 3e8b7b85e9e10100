import { createHash } from 'node:crypto'
import {
  errorsMax,
  type LineError,
  type Placed,
  type StagedLine,
} from '#shared/domain/file-lines.ts'
import { linesOf, type LineLimits } from '#shared/vault/bulk/lines.ts'
import { isLineOver } from '#shared/vault/bulk/upload.ts'
import { Refusal } from '#shared/core/errors.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'
import { stageChunk, type NewChunk } from '#shared/vault/bulk/files.postgres.ts'
import { screened, type Redaction } from '#shared/privacy/redaction-policy.ts'
import { wellFormed } from '#shared/core/sanitize-text.ts'

/** How lines of one kind are read. */
export type LineReader = {
  /** What becomes of private data in a line. */
  redaction: Redaction | null
  /** @throws Refusal `invalid` for a line that is not of the right shape. */
  check(value: unknown): StagedLine
  /** What tells a line from others: a line of the same key is marked as said again. */
  keyOf(line: StagedLine): string
}

/**
 * One job stores about this much: it is over in a fraction of a second and easily done again. In chunks
 * of 100 lines a file of 10,000 took a fifth to a third longer, in chunks of 250 no less.
 */
const chunkLines = 200
const chunkBytes = 512 * 1024

export type StagedFile = {
  lines: number
  /** SHA-256 of its bytes. */
  hash: Buffer
}

/**
 * Reads a file as it arrives and stages it in chunks, one at a time: what this process holds does not
 * grow with the file. A faulty line is noted and left out.
 *
 * @throws Refusal `too-large` when a limit is passed, `invalid` when the file has no line at all, or
 *   ends before it should.
 */
export async function stageFile(
  query: Query,
  file: string,
  source: AsyncIterable<Uint8Array>,
  limits: LineLimits,
  reader: LineReader,
): Promise<StagedFile> {
  const hash = createHash('sha256')
  const hashed = async function* (): AsyncGenerator<Uint8Array> {
    for await (const piece of source) {
      hash.update(piece)
      yield piece
    }
  }
  const open = new Map<number, Chunk>()
  const said = new Set<string>()
  let n = 0
  let lines = 0
  const stage = async (tier: number, chunk: Chunk): Promise<void> => {
    open.delete(tier)
    await stageChunk(query, file, { ...chunk, n: n++, tier, sessions: [...chunk.sessions] })
  }

  for await (const { number, bytes } of linesOf(hashed(), limits)) {
    lines++
    const read = readLine(bytes, number, reader, said)
    const tier = 'error' in read ? 1 : tierOf(read)
    const chunk = open.get(tier) ?? emptyChunk()
    open.set(tier, chunk)
    chunk.lines++
    chunk.bytes += bytes.length
    if ('error' in read) note(chunk, read)
    else add(chunk, read)
    if (!('error' in read) && isLineOver(read)) remark(chunk, overRemark(read))
    if (chunk.lines === chunkLines || chunk.bytes >= chunkBytes) await stage(tier, chunk)
  }
  for (const [tier, chunk] of open) await stage(tier, chunk)
  requireLines(lines)
  return { lines, hash: hash.digest() }
}

type Chunk = Omit<NewChunk, 'n' | 'tier' | 'sessions'> & { bytes: number; sessions: Set<string> }

const emptyChunk = (): Chunk => ({
  lines: 0,
  bytes: 0,
  failed: 0,
  errors: [],
  sessions: new Set(),
  content: [],
})

function note(chunk: Chunk, error: LineError): void {
  chunk.failed++
  remark(chunk, error)
}

function remark(chunk: Chunk, error: LineError): void {
  if (chunk.errors.length < errorsMax) chunk.errors.push(error)
}

/** Why a good line is skipped. */
export const overRemark = ({ line, expires_at: end }: Placed<StagedLine>): LineError => ({
  line,
  error: `skipped: it was over at ${end}`,
})

function add(chunk: Chunk, line: StagedLine): void {
  if ('session_id' in line && line.session_id !== null) chunk.sessions.add(line.session_id)
  chunk.content.push(line)
}

const tierOf = (line: StagedLine): number => ('tier' in line ? line.tier : 1)

/** @throws Refusal `invalid` for a file without a line. */
export function requireLines(lines: number): void {
  if (lines > 0) return
  throw new Refusal('invalid', 'The file has no lines', 'Send one JSON object per line')
}

/**
 * The line as its reader knows it, or what is wrong with it.
 *
 * @param said the keys of earlier lines; that of this one is added
 */
export function readLine(
  bytes: Uint8Array,
  number: number,
  { redaction, check, keyOf }: LineReader,
  said: Set<string>,
): Placed<StagedLine> | LineError {
  try {
    const value = wellFormed(JSON.parse(utf8.decode(bytes)) as unknown)
    const line = screenedLine(redaction, check(value))
    if (line.content.trim() === '') throw new Refusal('invalid', 'content is blank')
    const key = keyOf(line)
    const again = said.has(key)
    said.add(key)
    return { ...line, line: number, ...(again && { again }) }
  } catch (error) {
    return { line: number, error: wordsOf(error) }
  }
}

/** A line of other words than it came with leaves the vector of those behind. */
function screenedLine(redaction: Redaction | null, line: StagedLine): StagedLine {
  if (!redaction) return line
  const content = screened(redaction, line.content, 'content')
  if (!('tier' in line)) return { ...line, content }
  const { vector, name, ...rest } = line
  return {
    ...rest,
    content,
    ...(name !== undefined && { name: screened(redaction, name, 'name') }),
    ...(vector && content === line.content && { vector }),
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function wordsOf(error: unknown): string {
  if (error instanceof Refusal) {
    // The shape was made for a whole body.
    const message = error.message.replace(/^the body/i, 'the line')
    return error.hint ? `${message}; ${error.hint}` : message
  }
  if (error instanceof SyntaxError) return 'not valid JSON'
  if (error instanceof TypeError) return 'not valid UTF-8'
  throw error
}
