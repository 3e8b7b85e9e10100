import { runInSlices, type Steps } from '#shared/core/event-loop.ts'
import { countTokensInSteps } from '#shared/core/tokens.ts'
import type { Message, Turn } from '#shared/domain/message-content.ts'
import { toReadTurns } from '#shared/domain/turn/conversation.ts'
import { applyRedactionToMessages, type RedactionPolicy } from '#shared/privacy/apply-redaction.ts'

type TextChunk = { text: string; tokens: number }

/** Tokens per memory at most; a longer text becomes several memories. */
export const chunkTokensMax = 512

/** Characters per token at most in running text: shorter texts are one chunk. */
const charactersPerToken = 128

/**
 * Cuts a text into chunks of at most 512 tokens: at ends of paragraphs, then of sentences, then of words, then
 * of graphemes, then inside one. The chunks joined are the text; none is blank, unless the text is. Yields to the event
 * loop.
 */
export const splitIntoChunks = (text: string, signal?: AbortSignal): Promise<TextChunk[]> =>
  runInSlices(splitInSteps(text), { signal })

function* splitInSteps(text: string): Steps<TextChunk[]> {
  const tokens = yield* countUpToMax(text)
  if (tokens <= chunkTokensMax) return [{ text, tokens }]
  return yield* withoutBlank(yield* packChunks(text, 0))
}

/** Joins blank chunks, which are no memory, to the one before, or to the next; where it is full its nearest word goes along. */
function* withoutBlank(chunks: readonly TextChunk[]): Steps<TextChunk[]> {
  const kept: TextChunk[] = []
  const measure = function* (text: string): Steps<TextChunk> {
    return { text, tokens: yield* countTokensInSteps(text) }
  }
  for (const chunk of chunks) {
    const before = kept.at(-1)
    if (!before || (!isBlank(before) && !isBlank(chunk))) {
      kept.push(chunk)
      continue
    }
    kept.pop()
    const joined = yield* measure(before.text + chunk.text)
    const [, head = '', tail = ''] = (isBlank(chunk) ? lastWord : firstWord).exec(joined.text) ?? []
    const fits = joined.tokens <= chunkTokensMax || head.trim() === '' || tail.trim() === ''
    if (fits) kept.push(joined)
    else kept.push(yield* measure(head), yield* measure(tail))
  }
  return kept
}

const isBlank = ({ text }: TextChunk): boolean => text.trim() === ''
/** Behind all words but the last, and behind the first, of at most 64 characters; not before a mark or a joiner. */
const lastWord = /^(.*?)(?<!\u200d)(?![\p{M}\p{EMod}\u200d])(\S{1,64}\s*)$/su
const firstWord = /^(\s*\S{1,64})(?<!\u200d)(?![\p{M}\p{EMod}\u200d])(.*)$/su

/** Tokens of a text; of one that is longer than a chunk some number above 512. */
function* countUpToMax(text: string): Steps<number> {
  if (text.length > chunkTokensMax * charactersPerToken) return Infinity
  return yield* countTokensInSteps(text, chunkTokensMax)
}

/** Ways to split a text, from coarse to fine. */
const cuts: ((text: string) => string[])[] = [
  text => text.split(/(?<=\n[ \t]*\n)/),
  text => text.split(/(?<=\n)/),
  text => segments(text, 'sentence'),
  text => text.split(/(?<=\s)(?=\S)/),
  text => joinGroups(segments(text, 'grapheme'), 64),
  text => segments(text, 'grapheme'),
  // A letter may carry thousands of combining marks.
  text => joinGroups(Array.from(text), 64),
]

/** Fills chunks with parts of one kind; a part that is longer than a chunk is split more finely. */
function* packChunks(text: string, level: number): Steps<TextChunk[]> {
  const parts = cuts[level]?.(text) ?? [text]
  yield
  const chunks: TextChunk[] = []
  let chunk = ''
  let chunkTokens = 0
  function* flush(): Steps<void> {
    if (chunk !== '') chunks.push({ text: chunk, tokens: yield* countTokensInSteps(chunk) })
    chunk = ''
    chunkTokens = 0
  }
  for (const part of parts) {
    yield
    const tokens = yield* countUpToMax(part)
    // Joining parts can only merge tokens: the sum is an upper bound for the joined text.
    if (chunkTokens + tokens <= chunkTokensMax) {
      chunk += part
      chunkTokens += tokens
      continue
    }
    yield* flush()
    if (tokens <= chunkTokensMax) {
      chunk = part
      chunkTokens = tokens
    } else if (level + 1 < cuts.length) {
      for (const one of yield* packChunks(part, level + 1)) chunks.push(one)
    } else {
      chunks.push({ text: part, tokens })
    }
  }
  yield* flush()
  return chunks
}

const segmenters = {
  sentence: new Intl.Segmenter('en', { granularity: 'sentence' }),
  grapheme: new Intl.Segmenter('en', { granularity: 'grapheme' }),
}

const segments = (text: string, kind: keyof typeof segmenters): string[] =>
  Array.from(segmenters[kind].segment(text), ({ segment }) => segment)

function joinGroups(parts: string[], size: number): string[] {
  const slices: string[] = []
  for (let start = 0; start < parts.length; start += size) {
    slices.push(parts.slice(start, start + size).join(''))
  }
  return slices
}

/** A turn with its text in chunks. */
export type ChunkedTurn = Omit<Turn, 'text'> & { chunks: TextChunk[] }

export type ChunkedMessages = {
  /** As they may be stored. */
  messages: readonly Message[]
  turns: ChunkedTurn[]
}

/**
 * Redacts messages that were read and cuts their turns into chunks.
 *
 * @throws Refusal `invalid` when the policy blocks one; the reason of `signal`.
 */
export async function chunkMessages(
  redaction: RedactionPolicy | null,
  messages: readonly Message[],
  signal?: AbortSignal,
): Promise<ChunkedMessages> {
  const storable = applyRedactionToMessages(redaction, messages)
  const turns: ChunkedTurn[] = []
  for (const { text, ...turn } of toReadTurns(storable)) {
    const isBlankText = text.trim() === ''
    turns.push({ ...turn, chunks: isBlankText ? [] : await splitIntoChunks(text, signal) })
  }
  return { messages: storable, turns }
}
