import { profileKinds, type ProfileKind } from '#shared/domain/profile-kinds.ts'

const headings: Record<ProfileKind, string> = {
  instruction: 'Standing instructions',
  name: 'Names',
  role: 'Work and studies',
  place: 'Places',
  date: 'Dates',
  person: 'People and animals',
  preference: 'Preferences',
  possession: 'Possessions',
  change: 'Changes',
}

/** A quote, when it was first said in epoch milliseconds, and who said it where several people talk. */
export type ProfileLine = {
  kind: ProfileKind
  quote: string
  since: number
  until: number | null
  speaker?: string
}

const openingTag = '<memory_profile>'
const closingTag = '</memory_profile>'
/** Inside, so that nothing of a block that is sent back is stored. */
const introduction =
  'What the user has said in earlier conversations, word for word, with the day it was first said.'

/**
 * What holds, as a block to put before a model: a heading for each kind, a line for each quote, no quote
 * twice. Equal lines give equal bytes: there is no clock in it. A quote can neither close the element nor
 * begin a line of its own.
 *
 * @returns null without lines that hold.
 */
export function renderProfile(lines: readonly ProfileLine[]): string | null {
  const told = new Set<string>()
  const parts: string[] = []
  for (const kind of profileKinds) {
    const ofKind = lines.filter(
      line => line.kind === kind && line.until === null && !told.has(line.quote),
    )
    if (ofKind.length === 0) continue
    for (const { quote } of ofKind) told.add(quote)
    parts.push(`${headings[kind]}:`, ...ofKind.map(renderLine))
  }
  return parts.length === 0 ? null : [openingTag, introduction, ...parts, closingTag].join('\n')
}

const renderLine = ({ quote, since, speaker }: ProfileLine): string =>
  `- ${speaker === undefined ? '' : `${escapeText(speaker)}: `}${escapeText(quote)} (${new Date(since).toISOString().slice(0, 10)})`

/** Our own elements are opened and closed by us alone. */
const escapeText = (text: string): string =>
  text.replaceAll(/<(?=\/?memory_)/gi, '&lt;').replaceAll(/[\r\n\u2028\u2029\u0085]/g, ' ')
