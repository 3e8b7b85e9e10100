import { countTokens } from '#shared/core/tokens.ts'

export type TextChunk = { text: string; tokens: number }

/** A memory holds at most this many tokens; a longer text becomes several memories. */
export const chunkTokensMax = 512

/** No token is longer than this many characters in running text: shorter texts need no cutting. */
const charactersPerToken = 128

/**
 * Cuts a text into pieces of at most 512 tokens, at paragraph ends where they fit, then at sentence
 * ends, then at word ends, and only then between graphemes. Joined again the pieces are the text,
 * character for character. Other requests get their turn every few milliseconds meanwhile.
 */
export async function splitIntoChunks(text: string): Promise<TextChunk[]> {
  if (text.length <= chunkTokensMax * charactersPerToken) {
    const tokens = countTokens(text)
    if (tokens <= chunkTokensMax) return [{ text, tokens }]
  }
  return packChunks(text, 0, createEventLoopYield())
}

/** Ways to take a text apart, from coarse to fine. */
const cuts: ((text: string) => string[])[] = [
  text => text.split(/(?<=\n[ \t]*\n)/),
  text => text.split(/(?<=\n)/),
  text => segments(text, 'sentence'),
  text => text.split(/(?<=\s)(?=\S)/),
  text => joinGroups(segments(text, 'grapheme'), 64),
  text => segments(text, 'grapheme'),
]

/** Fills pieces with parts of one kind; a part that is too long for a piece is cut more finely. */
async function packChunks(
  text: string,
  level: number,
  yieldToEventLoop: EventLoopYield,
): Promise<TextChunk[]> {
  const parts = cuts[level]?.(text) ?? [text]
  const chunks: TextChunk[] = []
  let held = ''
  let heldTokens = 0
  const flush = () => {
    if (held !== '') chunks.push({ text: held, tokens: countTokens(held) })
    held = ''
    heldTokens = 0
  }
  for (const part of parts) {
    await yieldToEventLoop()
    const tokens = part.length > chunkTokensMax * charactersPerToken ? Infinity : countTokens(part)
    // Tokens merge across a seam, never split: the sum is an upper bound of the joined text.
    if (heldTokens + tokens <= chunkTokensMax) {
      held += part
      heldTokens += tokens
      continue
    }
    flush()
    if (tokens <= chunkTokensMax) {
      held = part
      heldTokens = tokens
    } else if (level + 1 < cuts.length) {
      chunks.push(...(await packChunks(part, level + 1, yieldToEventLoop)))
    } else {
      chunks.push({ text: part, tokens })
    }
  }
  flush()
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

type EventLoopYield = () => Promise<void> | undefined

const yieldAfterMs = 10

/** Lets the event loop turn when this work has held it for 10 ms: 20 MiB of text take a second and more. */
function createEventLoopYield(): EventLoopYield {
  let since = performance.now()
  return () => {
    if (performance.now() - since < yieldAfterMs) return undefined
    return new Promise(resolve =>
      setImmediate(() => {
        since = performance.now()
        resolve()
      }),
    )
  }
}
