import { call, filled } from '#api/console/app/api-call.ts'
import { formatDay, formatTime, toIsoString } from '#api/console/app/format.ts'
import { html, type View } from '#api/console/app/html.ts'
import { metadataChips, speakerRow, tagChips, timeView } from '#api/console/app/parts/chips.ts'
import { filters, textField, useFilters } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { listView } from '#api/console/app/parts/notes.ts'
import { usePagedList } from '#api/console/app/queries.ts'
import type { DatedMemory } from '#api/contract/generated/types.ts'

const unfiltered = { query: '', from: '', to: '' }
type Filters = typeof unfiltered

/** Before the first memory of any team. */
const beginning = '1970-01-01'
/** Tokens of a page: some dozens of memories. */
const pageTokens = 2_000

/** What a member may see of the team's memory, newest first, or what fits a question best. */
export function Team(): View {
  const { fields, of } = useFilters(unfiltered)
  const list = usePagedList<DatedMemory>(
    (cursor, signal) => readPage(fields, cursor, signal),
    Object.values(fields),
  )
  return page({
    title: 'Team',
    description: 'What your team shares, as far as your roles let you see it.',
    children: html`${filters(
      textField({ label: 'Question', type: 'search', ...of('query'), maxlength: 32_000 }),
      textField({ label: 'From', type: 'date', ...of('from') }),
      textField({ label: 'To', type: 'date', ...of('to') }),
    )}
    ${listView(list, {
      what: 'the memory of the team',
      empty: [
        'Nothing of the team here',
        fields.query || fields.from || fields.to
          ? 'Try another question or a longer time.'
          : 'What members say and admins seed appears here, where your roles allow it.',
      ],
      show: memories =>
        groupsOf(memories, fields.query === '').map(
          ([day, ofDay]) =>
            html`<section key=${day} class="stack-tight">
              ${day && html`<h2 class="day-name">${day}</h2>`}
              <ul class="plain latest">
                ${ofDay.map(memory => html`<li key=${memory.id}>${memoryRow(memory, day === '')}</li>`)}
              </ul>
            </section>`,
        ),
    })}`,
  })
}

async function readPage(
  { query, from, to }: Filters,
  cursor: string | undefined,
  signal: AbortSignal,
): Promise<{ items: DatedMemory[]; next_cursor: string | null }> {
  const end = cursor ?? to
  const body = {
    source: 'org' as const,
    from: from || beginning,
    max_tokens: pageTokens,
    ...filled({ query, to: end }),
  }
  const { memories, truncated, returned } = await call(
    'POST /v1/memory/date-search',
    { body },
    signal,
  )
  // A ranking has one page: its best.
  return { items: memories, next_cursor: truncated && query === '' ? returned.from : null }
}

/** Memories by their day; one group without a name where they are ranked. */
const groupsOf = (
  memories: readonly DatedMemory[],
  byDay: boolean,
): (readonly [day: string, memories: readonly DatedMemory[]])[] =>
  byDay ? [...Map.groupBy(memories, ({ timestamp }) => formatDay(timestamp))] : [['', memories]]

const memoryRow = (memory: DatedMemory, showsDay: boolean): View => {
  const { content, author = '', timestamp, tags = [], metadata } = memory
  const words = showsDay ? undefined : formatTime(timestamp)
  const note = html`<span>${author}</span> ${timeView(timestamp, words, toIsoString(timestamp))}
    ${tags.length > 0 && tagChips(tags)} ${metadataChips(metadata)}`
  return speakerRow(
    { role: 'user', name: author },
    html`<p class="memory-text">${content}</p>`,
    note,
  )
}
