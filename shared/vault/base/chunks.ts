import { tokensOf } from '#shared/core/tokens.ts'

export type Piece = { text: string; tokens: number }

/** A memory holds at most this many tokens; a longer text becomes several memories. */
export const pieceTokens = 512

/** No token is longer than this many characters in running text: shorter texts need no cutting. */
const charactersPerToken = 128

/**
 * Cuts a text into pieces of at most 512 tokens, at paragraph ends where they fit, then at sentence
 * ends, then at word ends, and only then between graphemes. Joined again the pieces are the text,
 * character for character. Other requests get their turn every few milliseconds meanwhile.
 */
export async function piecesOf(text: string): Promise<Piece[]> {
  if (text.length <= pieceTokens * charactersPerToken) {
    const tokens = tokensOf(text)
    if (tokens <= pieceTokens) return [{ text, tokens }]
  }
  return packed(text, 0, createBreather())
}

/** Ways to take a text apart, from coarse to fine. */
const cuts: ((text: string) => string[])[] = [
  text => text.split(/(?<=\n[ \t]*\n)/),
  text => text.split(/(?<=\n)/),
  text => segments(text, 'sentence'),
  text => text.split(/(?<=\s)(?=\S)/),
  text => slicesOf(segments(text, 'grapheme'), 64),
  text => segments(text, 'grapheme'),
]

/** Fills pieces with parts of one kind; a part that is too long for a piece is cut more finely. */
async function packed(text: string, level: number, breathe: Breather): Promise<Piece[]> {
  const parts = cuts[level]?.(text) ?? [text]
  const pieces: Piece[] = []
  let held = ''
  let heldTokens = 0
  const flush = () => {
    if (held !== '') pieces.push({ text: held, tokens: tokensOf(held) })
    held = ''
    heldTokens = 0
  }
  for (const part of parts) {
    await breathe()
    const tokens = part.length > pieceTokens * charactersPerToken ? Infinity : tokensOf(part)
    // Tokens merge across a seam, never split: the sum is an upper bound of the joined text.
    if (heldTokens + tokens <= pieceTokens) {
      held += part
      heldTokens += tokens
      continue
    }
    flush()
    if (tokens <= pieceTokens) {
      held = part
      heldTokens = tokens
    } else if (level + 1 < cuts.length) {
      pieces.push(...(await packed(part, level + 1, breathe)))
    } else {
      pieces.push({ text: part, tokens })
    }
  }
  flush()
  return pieces
}

const segmenters = {
  sentence: new Intl.Segmenter('en', { granularity: 'sentence' }),
  grapheme: new Intl.Segmenter('en', { granularity: 'grapheme' }),
}

const segments = (text: string, kind: keyof typeof segmenters): string[] =>
  Array.from(segmenters[kind].segment(text), ({ segment }) => segment)

function slicesOf(parts: string[], size: number): string[] {
  const slices: string[] = []
  for (let start = 0; start < parts.length; start += size) {
    slices.push(parts.slice(start, start + size).join(''))
  }
  return slices
}

type Breather = () => Promise<void> | undefined

const breatheAfterMs = 10

/** Lets the event loop turn when this work has held it for 10 ms: 20 MiB of text take a second and more. */
function createBreather(): Breather {
  let since = performance.now()
  return () => {
    if (performance.now() - since < breatheAfterMs) return undefined
    return new Promise(resolve =>
      setImmediate(() => {
        since = performance.now()
        resolve()
      }),
    )
  }
}
