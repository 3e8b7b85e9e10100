import type { Draft, Losses } from '#scripts/clients/import/draft.ts'
import {
  addMilliseconds,
  asList,
  asObject,
  asText,
  asTime,
  type Fields,
} from '#scripts/clients/import/formats/fields.ts'
import { jsonFormat } from '#scripts/clients/import/formats/format.ts'
import { htmlToText } from '#scripts/clients/import/formats/html-text.ts'

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
  yield { content: prompt, role: 'user', timestamp, metadata }
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

/** What the user said, without the verb before it; undefined for other activity. */
function promptOf(record: Fields): string | undefined {
  const title = asText(record['title'])
  if (title === undefined || !isOfGemini(record) || otherVerbs.test(title)) return undefined
  // In other languages the verb is unknown: the title stays whole, and other activity is not told apart.
  const verb = promptVerbs.find(found => title.startsWith(found))
  return title.slice(verb?.length ?? 0)
}

const answerOf = (record: Fields): string =>
  asList(record['safeHtmlItem'])
    .map(item => htmlToText(asText(asObject(item)['html']) ?? ''))
    .filter(text => text !== '')
    .join('\n')
