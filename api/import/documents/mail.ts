import PostalMime, { type Address } from 'postal-mime'
import {
  documentBounds,
  type DocumentBytes,
  type Paragraph,
} from '#api/import/documents/document.ts'
import { htmlParagraphs } from '#api/import/documents/markup.ts'
import { paragraphsOf } from '#api/import/documents/plain-text.ts'
import type { Losses } from '#api/import/draft.ts'
import { Refusal } from '#shared/core/errors.ts'

/** Reads an attachment, which is a document itself. */
type ReadAttachment = (document: DocumentBytes, level: number) => AsyncIterable<Paragraph>

/**
 * Reads a mail (RFC 5322): its head, its text, then its attachments as sections of their own.
 *
 * @param level how many documents it stands in
 */
export async function* readMail(
  { bytes, name, pictures }: DocumentBytes,
  losses: Losses,
  level: number,
  readAttachment: ReadAttachment,
): AsyncGenerator<Paragraph> {
  const mail = await PostalMime.parse(bytes, {
    forceRfc822Attachments: true,
    attachmentEncoding: 'arraybuffer',
  }).catch((error: unknown) => {
    throw new Refusal('invalid', `${name} is no mail that can be read: ${(error as Error).message}`)
  })
  const { subject, date, from, to, cc, text, html, attachments } = mail
  const section = subject?.trim() || undefined
  const head = [
    subject && `Subject: ${subject}`,
    from && `From: ${namesOf([from])}`,
    to && `To: ${namesOf(to)}`,
    cc && `Cc: ${namesOf(cc)}`,
    date && `Date: ${date}`,
  ].filter(Boolean)
  if (head.length > 0) yield* paragraphsOf(head.join('\n'), section)
  if (text?.trim()) yield* paragraphsOf(text, section)
  else if (html) yield* htmlParagraphs(html, losses, { under: section, pictures })
  for (const { filename, mimeType, content } of attachments) {
    const attached = filename ?? mimeType
    const bytes = new Uint8Array(content as ArrayBuffer)
    if (level >= documentBounds.levels) losses.add('attachments within attachments')
    else if (mimeType.startsWith('image/')) {
      const picture = pictures?.take(bytes)
      if (picture) yield { text: '', section: attached, picture }
      else losses.add('pictures')
    } else {
      const document = { bytes, name: attached, mediaType: mimeType, pictures }
      try {
        for await (const { section: within, ...paragraph } of readAttachment(document, level + 1))
          yield {
            ...paragraph,
            section: within === undefined ? attached : `${attached}: ${within}`,
          }
      } catch (error) {
        if (!(error instanceof Refusal)) throw error
        losses.add(`attachments that cannot be read: ${error.message}`)
      }
    }
  }
}

const namesOf = (addresses: readonly Address[]): string =>
  addresses
    .map(({ name, address }) => (name && address ? `${name} <${address}>` : name || address))
    .filter(Boolean)
    .join(', ')
