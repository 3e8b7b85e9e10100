import { lexer } from 'marked'
import type { DocumentReader } from '#api/import/documents/document.ts'
import { decodeText, paragraphsOf } from '#api/import/documents/plain-text.ts'
import type { Losses } from '#api/import/draft.ts'

/** Reads Markdown as it is written; headings name the sections. */
export const readMarkdown: DocumentReader = function* ({ bytes }, losses) {
  const text = decodeText(bytes)
  losses.add('pictures', text.match(/!\[/g)?.length ?? 0)
  let section: string | undefined
  for (const { type, raw, heading } of blocksOf(text, losses)) {
    if (type === 'space') continue
    if (heading) section = heading
    yield* paragraphsOf(raw, section)
  }
}

function blocksOf(text: string, losses: Losses): { type: string; raw: string; heading?: string }[] {
  try {
    return lexer(text).map(token => ({
      type: token.type,
      raw: token.raw,
      ...(token.type === 'heading' && { heading: String(token['text']) }),
    }))
  } catch {
    // Thousands of nested quotes or lists.
    losses.add('headings: the document is nested too deeply')
    return [{ type: 'paragraph', raw: text }]
  }
}
