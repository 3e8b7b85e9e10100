import { createHash } from 'node:crypto'
import {
  reportedErrorsMax,
  type LineError,
  type NumberedLine,
  type StagedLine,
} from '#shared/domain/file-types.ts'
import { lineTooLong, splitLines, type LineLimits } from '#shared/vault/bulk/split-lines.ts'
import { isLineExpired } from '#shared/vault/bulk/upload-lines.ts'
import { FileRefusal, Refusal } from '#shared/core/errors.ts'
import { createJsonCounter, parsedBodyBounds } from '#shared/core/json-bounds.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'
import { insertSteps } from '#shared/operations/operation-steps.postgres.ts'
import type { ChunkInput, ChunkLines } from '#shared/vault/bulk/files.postgres.ts'
import {
  applyRedaction,
  redactMetadata,
  type RedactionPolicy,
} from '#shared/privacy/apply-redaction.ts'
import { sanitizeJson } from '#shared/core/sanitize-text.ts'

/** How lines of one kind are read. */
export type LineReader = {
  /** What becomes of private data in a line. */
  redaction: RedactionPolicy | null
  /** @throws Refusal `invalid` for a line that is not of the right shape. */
  check(value: unknown): StagedLine
  /** Identifies a line: a second line of the same key is marked as repeated. */
  keyOf(line: StagedLine): string
}

/**
 * Lines and bytes for one job, which takes a fraction of a second. Chunks of 100 lines took a fifth to a third
 * longer, chunks of 250 no less.
 */
const chunkLines = 200
const chunkBytes = 512 * 1024

/** Chunks are numbered tier by tier, so that an import stores the sources of a reflection before it. */
const chunksPerTierMax = 1_000_000

/**
 * Stages a file in chunks as it arrives, one per tier at a time: memory use does not grow with the file. Faulty
 * lines are counted, reported and left out.
 *
 * @throws Refusal `too-large` over a limit, `invalid` for a file that is cut off or has no line to store.
 */
export async function stageFile(
  query: Query,
  file: string,
  source: AsyncIterable<Uint8Array>,
  limits: LineLimits,
  reader: LineReader,
): Promise<{
  lines: number
  /** SHA-256 of the file's bytes. */
  hash: Buffer
}> {
  const hash = createHash('sha256')
  const hashedSource = async function* (): AsyncGenerator<Uint8Array> {
    for await (const bytes of source) {
      hash.update(bytes)
      yield bytes
    }
  }
  const openChunks = new Map<number, OpenChunk>()
  const seenKeys = new Set<string>()
  const firstErrors: LineError[] = []
  const stagedChunks = new Map<number, number>()
  let linesBefore = 0
  let lines = 0
  let failed = 0
  const stage = async (tier: number, chunk: OpenChunk): Promise<void> => {
    openChunks.delete(tier)
    const staged = stagedChunks.get(tier) ?? 0
    stagedChunks.set(tier, staged + 1)
    const { lines, failed, errors, sessions, content } = chunk
    const input: ChunkInput = { content, linesBefore }
    const n = (tier - 1) * chunksPerTierMax + staged
    const step = { n, input, sessions: [...sessions], counts: { lines, failed }, errors }
    // The commit that accepts the file makes its chunks durable.
    await insertSteps(query, file, [step], 'off')
    linesBefore += lines
  }

  for await (const { number, bytes, isTooLong } of splitLines(hashedSource(), limits)) {
    lines++
    const read = isTooLong
      ? { line: number, error: lineTooLong(limits) }
      : parseLine(bytes, number, reader, seenKeys)
    const tier = 'error' in read ? 1 : tierOf(read)
    const chunk = openChunks.get(tier) ?? emptyChunk()
    openChunks.set(tier, chunk)
    chunk.lines++
    chunk.bytes += bytes.length
    if ('error' in read) {
      failed++
      addFailure(chunk, read)
      if (firstErrors.length < reportedErrorsMax) firstErrors.push(read)
    } else addLine(chunk, read)
    if (!('error' in read) && isLineExpired(read)) addRemark(chunk, expiredRemark(read))
    if (chunk.lines === chunkLines || chunk.bytes >= chunkBytes) await stage(tier, chunk)
  }
  for (const [tier, chunk] of openChunks) await stage(tier, chunk)
  requireLines(lines)
  if (failed === lines) throw new FileRefusal(firstErrors)
  return { lines, hash: hash.digest() }
}

type OpenChunk = ChunkLines & {
  content: StagedLine[]
  bytes: number
  sessions: Set<string>
}

const emptyChunk = (): OpenChunk => ({
  lines: 0,
  bytes: 0,
  failed: 0,
  errors: [],
  sessions: new Set(),
  content: [],
})

function addFailure(chunk: OpenChunk, error: LineError): void {
  chunk.failed++
  addRemark(chunk, error)
}

function addRemark(chunk: OpenChunk, error: LineError): void {
  if (chunk.errors.length < reportedErrorsMax) chunk.errors.push(error)
}

/** The remark for a valid line that has expired and is skipped. */
export const expiredRemark = ({ line, expires_at: end }: NumberedLine<StagedLine>): LineError => ({
  line,
  error: `skipped: it was over at ${end}`,
})

function addLine(chunk: OpenChunk, line: StagedLine): void {
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
 * The checked line, or its error.
 *
 * @param seenKeys the keys of earlier lines; the key of this line is added
 */
export function parseLine(
  bytes: Uint8Array,
  number: number,
  { redaction, check, keyOf }: LineReader,
  seenKeys: Set<string>,
): NumberedLine<StagedLine> | LineError {
  try {
    createJsonCounter(parsedBodyBounds)(bytes)
    const value = sanitizeJson(JSON.parse(utf8.decode(bytes)) as unknown)
    const line = redactLine(redaction, check(value))
    if (line.content.trim() === '') throw new Refusal('invalid', 'content is blank')
    const key = keyOf(line)
    const isRepeated = seenKeys.has(key)
    seenKeys.add(key)
    return { ...line, line: number, ...(isRepeated && { again: isRepeated }) }
  } catch (error) {
    return { line: number, error: describeError(error) }
  }
}

/** Redacts the text and names of a line; a changed text loses the vector of the original. */
function redactLine(redaction: RedactionPolicy | null, line: StagedLine): StagedLine {
  if (!redaction) return line
  const content = applyRedaction(redaction, line.content, 'content')
  const metadata = redactMetadata(redaction, line.metadata)
  if (!('tier' in line)) return { ...line, content, ...(metadata && { metadata }) }
  const { vector, name, origin_key: origin, consolidated_by: batches, ...rest } = line
  return {
    ...rest,
    content,
    ...(metadata && { metadata }),
    ...(name !== undefined && { name: applyRedaction(redaction, name, 'name') }),
    ...(origin !== undefined && { origin_key: applyRedaction(redaction, origin, 'origin_key') }),
    ...(batches && {
      consolidated_by: batches.map((batch, index) =>
        applyRedaction(redaction, batch, `consolidated_by[${index}]`),
      ),
    }),
    ...(vector && content === line.content && { vector }),
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function describeError(error: unknown): string {
  if (error instanceof Refusal) {
    // The shapes speak of a request body.
    const message = error.message.replace(/^the body/i, 'the line')
    return error.hint ? `${message}; ${error.hint}` : message
  }
  if (error instanceof SyntaxError) return 'not valid JSON'
  if (error instanceof TypeError) return 'not valid UTF-8'
  throw error
}
