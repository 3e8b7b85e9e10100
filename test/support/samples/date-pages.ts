import type { Backend } from '#shared/backend.ts'
import { tiers } from '#shared/domain/memory.ts'
import { searchDates, type DateSearchQuestion } from '#shared/vault/read/lists/date-search.ts'
import type { DateSearchRow } from '#shared/vault/read/lists/dated-row.ts'
import { parseTimeWindow } from '#shared/vault/read/lists/time-window.ts'

type DateSpan = { from: string; to: string }

/** What a client asks of a span of time; a page has 1,000 tokens unless told. */
export const dateQuestion = (
  { from, to }: DateSpan,
  rest: Partial<DateSearchQuestion> = {},
): DateSearchQuestion => ({
  window: parseTimeWindow(from, to, Date.now()),
  session: null,
  query: undefined,
  embeddings: undefined,
  tiers,
  importance: undefined,
  maxTokens: 1_000,
  order: 'newest_first',
  ...rest,
})

/** Follows `returned` until nothing is left out, as a client does; `between` pages something may happen. */
export async function readDatePages(
  backend: Backend,
  caller: Parameters<typeof searchDates>[1],
  { from, to }: DateSpan,
  rest: Partial<DateSearchQuestion>,
  between?: () => Promise<unknown>,
): Promise<DateSearchRow[][]> {
  const pages: DateSearchRow[][] = []
  for (let asked = 0; asked < 200; asked++) {
    const answer = await searchDates(backend, caller, dateQuestion({ from, to }, rest))
    if (answer.rows.length > 0) pages.push(answer.rows)
    if (!answer.truncated) return pages
    if (rest.order === 'oldest_first') from = answer.returned.to
    else to = answer.returned.from
    await between?.()
  }
  throw new Error('no end')
}
