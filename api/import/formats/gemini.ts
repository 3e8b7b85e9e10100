import type { Draft, Losses } from '#api/import/draft.ts'
import {
  addMilliseconds,
  asList,
  asObject,
  asText,
  asTime,
  type Fields,
} from '#api/import/formats/fields.ts'
import { jsonFormat } from '#api/import/formats/format.ts'

/** `My Activity/Gemini Apps/MyActivity.json` of Google Takeout: prompts with their answers. */
export const gemini = jsonFormat({
  product: 'Gemini',
  file: 'the zip of Takeout with "My Activity", Gemini Apps, as JSON, or its MyActivity.json',
  missing: 'which prompts were one conversation, titles, attachments, and the markup of answers',
  // The folder of all activity is named in the language of the account, the product everywhere the same.
  isExportFile: name =>
    /\.json$/i.test(name) && /activi|aktivi|attivi|ativi|gemini|bard/i.test(name),
  recognizes: value => typeof value['title'] === 'string' && typeof value['time'] === 'string',
  lists: [],
  open: losses => ({ drafts: record => recordDrafts(record, losses) }),
})

function* recordDrafts(record: Fields, losses: Losses): Generator<Draft> {
  const answer = answerOf(record)
  const prompt = promptOf(record)
  if (prompt === undefined) {
    losses.add('records of other activity than prompts')
    return
  }
  losses.add('attachments', asList(record['attachedFiles']).length)
  const timestamp = asTime(record['time'])
  const metadata = { source: 'gemini' }
  if (prompt === '') losses.add('prompts without words')
  else yield { content: prompt, role: 'user', timestamp, metadata }
  // The record has one time; the answer comes after its prompt.
  if (answer === '') losses.add('answers that the export lacks')
  else
    yield { content: answer, role: 'assistant', timestamp: addMilliseconds(timestamp, 1), metadata }
}

const isOfGemini = ({ header, products }: Fields): boolean =>
  /gemini|bard/i.test([header, ...asList(products)].join(' '))

const promptVerbs = [
  'Prompted with: ',
  'Prompted ',
  'Asked Gemini: ',
  'Asked Bard: ',
  'Asked ',
  'Said ',
]
const otherVerbs =
  /^(?:Created|Used|Added|Gave|Selected|Shared|Deleted|Viewed|Visited|Searched|Edited|Pinned|Renamed|Exported|Updated)\s/

/** Returns the prompt without the verb before it; undefined for other activity. */
function promptOf(record: Fields): string | undefined {
  const title = asText(record['title'])
  if (title === undefined || !isOfGemini(record) || otherVerbs.test(title)) return undefined
  // In other languages the verb is unknown: the title stays whole, and other activity cannot be recognized.
  const verb = promptVerbs.find(found => `${title.trimEnd()} `.startsWith(found))
  return title.slice(verb?.length ?? 0)
}

const answerOf = (record: Fields): string =>
  asList(record['safeHtmlItem'])
    .map(item => htmlToText(asText(asObject(item)['html']) ?? ''))
    .filter(text => text !== '')
    .join('\n')

const blockTags = new Set(
  'p br div li ul ol h1 h2 h3 h4 h5 h6 tr table pre blockquote hr'.split(' '),
)
const hiddenTags = new Set(['script', 'style'])

/** The named characters U+00A0 to U+00FF in their order, of HTML 4.01, 24.2.1. */
const latin1Names =
  `nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute micro
para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave
Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc
Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc
iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml`.split(
    /\s+/,
  )

/** Characters of the markup itself, letters beyond Latin-1 and punctuation, of HTML 4.01, 24.4. */
const otherNames =
  `amp & lt < gt > quot " apos ' ndash – mdash — hellip … bull • euro € trade ™ lsquo ‘ rsquo ’ sbquo ‚ ldquo “ rdquo ”
bdquo „ OElig Œ oelig œ Scaron Š scaron š Yuml Ÿ`.split(/\s+/)

const entities: ReadonlyMap<string, string> = new Map([
  ...latin1Names.map((name, index) => [name, String.fromCodePoint(0xa0 + index)] as const),
  ...otherNames.flatMap((name, index) =>
    index % 2 === 0 ? [[name, otherNames[index + 1]!] as const] : [],
  ),
])

/** Returns the words of a piece of HTML, a line for each block. */
function htmlToText(html: string): string {
  let text = ''
  let hidden: string | undefined
  for (let at = 0; at < html.length;) {
    const open = html.indexOf('<', at)
    const end = open === -1 ? html.length : open
    if (hidden === undefined) text += decodeEntities(html.slice(at, end))
    const close = open === -1 ? -1 : html.indexOf('>', open)
    if (close === -1) break
    const tag = /^\/?([a-z0-9]{1,20})/i.exec(html.slice(open + 1, open + 24))?.[1]?.toLowerCase()
    if (tag !== undefined && blockTags.has(tag)) text += '\n'
    if (tag !== undefined && hiddenTags.has(tag)) hidden = html[open + 1] === '/' ? undefined : tag
    at = close + 1
  }
  return text
    .split('\n')
    .map(line => line.replaceAll(/[\t\r\u00A0 ]{1,1000}/g, ' ').trim())
    .filter(line => line !== '')
    .join('\n')
}

const decodeEntities = (text: string): string =>
  text.replaceAll(/&(#\d{1,7}|#x[0-9a-f]{1,6}|[a-z][a-z0-9]{1,5});/gi, (all, name: string) => {
    if (!name.startsWith('#')) return entities.get(name) ?? entities.get(name.toLowerCase()) ?? all
    const code = Number(/^#x/i.test(name) ? `0${name.slice(1)}` : name.slice(1))
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : all
  })
