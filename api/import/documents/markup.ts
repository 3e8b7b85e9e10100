import { trimEndOf } from '#api/import/trim-end.ts'
import { Parser } from 'htmlparser2'
import { decodeText } from '#api/import/documents/plain-text.ts'
import type { DocumentReader, Paragraph } from '#api/import/documents/document.ts'
import type { Pictures } from '#api/import/documents/pictures.ts'
import type { Losses } from '#api/import/draft.ts'

/** Elements whose text is not read. */
const unread = new Set([
  'script',
  'style',
  'noscript',
  'template',
  'svg',
  'math',
  'head',
  'textarea',
  'select',
])
/** Elements that begin and end a paragraph. */
const blocks = new Set(
  'address article aside blockquote body caption center dd details dialog div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr html legend li main menu nav ol option p pre section summary table tbody tfoot thead tr ul'.split(
    ' ',
  ),
)

/** Reads HTML: headings name the sections, cells of a row are divided by bars. */
export const readHtml: DocumentReader = ({ bytes, pictures }, losses) =>
  htmlParagraphs(decodeHtml(bytes), losses, { pictures })

/** The charset that a page names in its first 1,024 bytes, as browsers look for it. */
function decodeHtml(bytes: Uint8Array): string {
  const start = new TextDecoder('windows-1252').decode(bytes.subarray(0, 1024))
  return decodeText(bytes, /charset\s*=\s*["']?([\w.:-]+)/i.exec(start)?.[1])
}

/** @param under the section until the first heading */
export function htmlParagraphs(
  html: string,
  losses: Losses,
  { under, pictures }: { under?: string | undefined; pictures?: Pictures | undefined } = {},
): Paragraph[] {
  const paragraphs: Paragraph[] = []
  let section = under
  let text = ''
  /** How many open elements are unread; which heading is open. */
  let hidden = 0
  let heading = false
  let kept = 0
  const end = (): void => {
    const line =
      kept > 0
        ? text.replace(/^\n+/, '').trimEnd()
        : trimEndOf(text.replaceAll(/\s+/g, ' ').replace(/^[ |]+/, ''), ' |')
    text = ''
    if (line === '') return
    if (heading) section = line
    paragraphs.push({ text: line, ...(section !== undefined && { section }) })
  }
  const parser = new Parser(
    {
      onopentag(name, { alt, src }) {
        if (unread.has(name)) hidden++
        if (hidden > 0) return
        if (blocks.has(name)) end()
        if (/^h[1-6]$/.test(name)) heading = true
        if (name === 'pre') kept++
        if (name === 'br') text += kept > 0 ? '\n' : ' '
        if (name === 'li') text += '- '
        if (name === 'td' || name === 'th') text += ' | '
        if (name === 'img') {
          const picture = pictures?.takeUrl(src)
          if (!picture) losses.add('pictures')
          else paragraphs.push({ text: '', ...(section !== undefined && { section }), picture })
          if (alt?.trim()) text += ` [picture: ${alt.trim()}] `
        }
      },
      ontext(part) {
        if (hidden === 0) text += part
      },
      onclosetag(name) {
        if (unread.has(name)) hidden = Math.max(0, hidden - 1)
        if (hidden > 0 || !blocks.has(name)) return
        end()
        if (name === 'pre') kept = Math.max(0, kept - 1)
        if (/^h[1-6]$/.test(name)) heading = false
      },
    },
    { decodeEntities: true },
  )
  parser.write(html)
  parser.end()
  end()
  return paragraphs
}

/** What is done with the elements of an XML file, by their names without prefix. */
export type ElementHandler = {
  open?(name: string, attributes: Readonly<Record<string, string>>): void
  text?(text: string): void
  close?(name: string): void
}

/** Reads XML in one pass; nothing of it is kept, entities beyond the five of XML are not resolved. */
export async function readXml(
  chunks: AsyncIterable<Uint8Array>,
  handler: ElementHandler,
): Promise<void> {
  const local = (name: string): string => name.slice(name.indexOf(':') + 1)
  const parser = new Parser(
    {
      onopentag: (name, attributes) => handler.open?.(local(name), attributes),
      ontext: text => handler.text?.(text),
      onclosetag: name => handler.close?.(local(name)),
    },
    { xmlMode: true, decodeEntities: true },
  )
  const decoder = new TextDecoder()
  for await (const chunk of chunks) parser.write(decoder.decode(chunk, { stream: true }))
  parser.write(decoder.decode())
  parser.end()
}
