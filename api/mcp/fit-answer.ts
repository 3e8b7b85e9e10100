import { countTokens } from '#shared/core/tokens.ts'

type Fields = Record<string, unknown>

/** Characters of the texts of an answer: some 15,000 tokens. Claude Code refuses more than 25,000 (code.claude.com/docs/en/mcp). */
const charactersMax = 60_000

/** Where an answer has rows, and the field of a row that may be long. */
const longTexts: Record<string, [rows: string, text: string]> = {
  search: ['memories', 'content'],
  list: ['items', 'text'],
  profile: ['items', 'quote'],
}

const textOf = (row: Fields, name: string): string => {
  const value = row[name]
  return typeof value === 'string' ? value : ''
}

/**
 * Brings an answer to what an agent can read, whatever one text holds. Nothing is left out without a word: rows of a time
 * window beyond its budget are counted, and texts of other rows come as the passage that fits the question.
 */
export function fitAnswer(tool: string, answer: Fields, args: Fields): Fields {
  if (tool === 'date_search') return fitWindow(answer, args)
  const [rows = '', text = ''] = longTexts[tool] ?? []
  const all = (answer[rows] ?? []) as Fields[]
  const total = all.reduce((sum, row) => sum + textOf(row, text).length, 0)
  if (total <= charactersMax) return answer
  const share = Math.floor(charactersMax / all.length)
  const query = [args.query, args.search].find(one => typeof one === 'string') ?? ''
  return {
    ...answer,
    [rows]: all.map(row => ({ ...row, [text]: passageOf(textOf(row, text), query, share) })),
    note: `Texts of more than ${share} characters are cut (…): a smaller limit shows them whole.`,
  }
}

/** The part of a text around the first word of the question that stands in it. */
function passageOf(text: string, query: string, length: number): string {
  if (text.length <= length) return text
  const lower = text.toLowerCase()
  const words = query.toLowerCase().match(/[\p{L}\p{N}]{3,}/gu) ?? []
  const [first = 0] = words
    .map(word => lower.indexOf(word))
    .filter(at => at >= 0)
    .toSorted((one, other) => one - other)
  const start = Math.max(0, Math.min(first - 40, text.length - length))
  const [before, after] = [start > 0 ? '… ' : '', start + length < text.length ? ' …' : '']
  return `${before}${text.slice(start, start + length)}${after}`
}

/** Cuts the rows of a time window at its budget: the pieces of one long text share a moment, and so a page. */
function fitWindow(answer: Fields, { max_tokens: asked, order, query }: Fields): Fields {
  const all = (answer.memories ?? []) as Fields[]
  const max = typeof asked === 'number' ? Math.max(asked, 1_000) : 4_000
  let tokens = 0
  let count = 0
  for (const row of all) {
    tokens += countTokens(textOf(row, 'content'))
    if (count > 0 && tokens > max) break
    count++
  }
  if (count === all.length) return answer
  const last = all[count - 1]!.timestamp as string
  const ofLast = all.slice(count).filter(({ timestamp }) => timestamp === last).length
  // As the endpoint has it: a millisecond beyond the last row, so that every other row comes once.
  const isForward = order === 'oldest_first'
  const next = new Date(Date.parse(last) + (isForward ? 1 : -1)).toISOString()
  return {
    ...answer,
    memories: all.slice(0, count),
    truncated: true,
    ...(query === undefined && {
      returned: { ...(answer.returned as Fields), [isForward ? 'to' : 'from']: next },
    }),
    note: `${all.length - count} rows are left out of this page${ofLast > 0 ? `, ${ofLast} of them of ${last}, the last moment that is shown` : ''}. Go on from returned, or ask with a query for what matters.`,
  }
}
