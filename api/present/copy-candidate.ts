import type { Memory } from '#shared/domain/memory.ts'

const snippetCharacters = 160

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' })

/** A memory that would be copied. */
export const presentCopyCandidate = ({ id, text, role, at, tokens }: Memory) => ({
  id,
  snippet: makeSnippet(text),
  role,
  timestamp: at,
  estimated_tokens: tokens,
})

/** The beginning of a text on one line, never cut inside a character as people see it. */
function makeSnippet(text: string): string {
  const line = text
    .slice(0, snippetCharacters * 8)
    .replaceAll(/\s+/gu, ' ')
    .trim()
  if (line.length <= snippetCharacters) return line
  let snippet = ''
  for (const { segment } of graphemes.segment(line)) {
    if (snippet.length + segment.length > snippetCharacters) break
    snippet += segment
  }
  return `${snippet.trimEnd()}…`
}
