import { profileElement } from '#shared/domain/echoes.ts'
import { profileHeadings, profileKinds, type ProfileKind } from '#shared/domain/profile-kinds.ts'

export type ProfileLine = {
  kind: ProfileKind
  quote: string
  /** Epoch milliseconds. */
  since: number
  until: number | null
  /** Where several people talk in a vault. */
  speaker?: string
}

/**
 * Renders the lines that hold as a block for a prompt: a heading for each kind, a line for each quote, no quote twice. Equal
 * lines give equal bytes: there is no clock in it. A quote can neither close the element nor begin a line of its own.
 *
 * @returns null without lines that hold
 */
export function renderProfile(lines: readonly ProfileLine[]): string | null {
  const rendered = new Set<string>()
  const parts: string[] = []
  for (const kind of profileKinds) {
    const ofKind = lines.filter(
      line => line.kind === kind && line.until === null && !rendered.has(line.quote),
    )
    if (ofKind.length === 0) continue
    for (const { quote } of ofKind) rendered.add(quote)
    parts.push(`${profileHeadings[kind]}:`, ...ofKind.map(renderLine))
  }
  const { opening, introduction, closing } = profileElement
  return parts.length === 0 ? null : [opening, introduction, ...parts, closing].join('\n')
}

const renderLine = ({ quote, since, speaker }: ProfileLine): string =>
  `- ${speaker === undefined ? '' : `${escapeText(speaker)}: `}${escapeText(quote)} (${new Date(since).toISOString().slice(0, 10)})`

/** Escapes our own elements and line breaks. */
const escapeText = (text: string): string =>
  text.replaceAll(/<(?=\/?memory_)/gi, '&lt;').replaceAll(/[\r\n\u2028\u2029\u0085]/g, ' ')
