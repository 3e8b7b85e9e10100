import { useEffect, useState } from 'preact/hooks'
import type { EndpointResponse } from '#api/client/client.ts'
import { useAddress } from '#api/console/app/use-address.ts'
import { useQuery } from '#api/console/app/use-query.ts'
import { call } from '#api/console/app/api-call.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { tierName, windowChip, type Tier } from '#api/console/app/parts/chips.ts'
import { checkboxGroup, selectField, onSubmit, textField } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { emptyNote, faultNote, loadingNote } from '#api/console/app/parts/query-view.ts'
import { searchTerms, highlightMatches } from '#api/console/app/vault/highlight.ts'
import { reasonChips } from '#api/console/app/vault/match-reasons.ts'
import { SelectionBar, useSelection } from '#api/console/app/vault/selection.ts'
import { MemoryCard } from '#api/console/app/vault/memory-card.ts'
import { fromSearchedMemory } from '#api/console/app/vault/displayed-memory.ts'
import { formatCount, pluralize } from '#api/console/app/format.ts'

type SearchResponse = EndpointResponse<'POST /v1/memory/search'>
type SearchedMemory = SearchResponse['memories'][number]

const allTiers: readonly Tier[] = [1, 2, 3]

/** What the address keeps of a search. */
const emptySearch = {
  query: '',
  limit: '10',
  tiers: '1,2,3',
  importance: '',
  session: '',
  as_of: '',
}
type Fields = typeof emptySearch

/** Searches a vault, and displays why each memory matches. */
export function Search(): View {
  const { fields, setFields, visits } = useAddress(emptySearch)
  const [form, setForm] = useState(fields)
  useEffect(() => setForm(fields), [visits])
  const set = (changed: Partial<Fields>): void => setForm({ ...form, ...changed })
  const result = useQuery(
    fields.query === '' ? undefined : signal => fetchMatches(fields, signal),
    Object.values(fields),
  )
  const search = (): void => {
    if (Object.entries(form).some(([name, value]) => fields[name as keyof Fields] !== value))
      setFields(form)
    else result.refetch()
  }
  const answer = fields.query === '' ? undefined : result.answer
  return page({
    title: 'Search',
    description: 'Ask as your product would. Each memory says why it was found.',
    children: html`<form class="panel search" role="search" onSubmit=${onSubmit(search)}>
        <div class="search-line">
          ${textField({
            label: 'Question',
            type: 'search',
            value: form.query,
            onValue: query => set({ query }),
            required: true,
            maxlength: 32_000,
            placeholder: 'What is the name of my cat?',
          })}
          <button class="button button-main" disabled=${result.isLoading}>Search</button>
        </div>
        ${optionFields(form, set)}
      </form>
      ${faultNote(result.fault)} ${result.isLoading && !answer && loadingNote('memories')}
      <div aria-live="polite">
        ${answer && renderComponent(Results, { answer, update: result.update })}
      </div>`,
  })
}

function fetchMatches(
  { query, limit, tiers, importance, session, as_of }: Fields,
  signal: AbortSignal,
): Promise<SearchResponse> {
  const chosen = tiersIn(tiers)
  const body = {
    query,
    limit: Number(limit),
    ...(chosen.length > 0 && chosen.length < 3 && { tiers: chosen }),
    ...(importance && { importance: Number(importance) }),
    ...(session && { session_id: session }),
    ...(as_of && { as_of }),
  }
  return call('POST /v1/memory/search', { body }, signal)
}

const tiersIn = (text: string): Tier[] => allTiers.filter(tier => text.includes(String(tier)))

const optionFields = (form: Fields, set: (changed: Partial<Fields>) => void): View =>
  html`<details class="options">
    <summary>Options</summary>
    <div class="filters">
      ${selectField({
        label: 'At most',
        value: form.limit,
        onValue: limit => set({ limit }),
        choices: ['5', '10', '20', '50', '200'].map(each => [each, `${each} memories`] as const),
      })}
      ${selectField({
        label: 'Importance',
        value: form.importance,
        onValue: importance => set({ importance }),
        choices: importances,
      })}
      ${textField({
        label: 'Session',
        value: form.session,
        onValue: session => set({ session }),
        maxlength: 256,
        placeholder: 'the core vault',
      })}
      ${textField({
        label: 'As of',
        type: 'date',
        value: form.as_of,
        onValue: as_of => set({ as_of }),
      })}
      ${checkboxGroup({
        label: 'Tiers',
        value: tiersIn(form.tiers),
        onValue: tiers => set({ tiers: tiers.toSorted().join(',') }),
        choices: allTiers.map(tier => [tier, tierName(tier)] as const),
      })}
    </div>
  </details>`

export const importances: readonly (readonly [string, string])[] = [
  ['', 'any'],
  ...Array.from({ length: 10 }, (_, i) => [`${i + 1}`, `${i + 1} or more`] as const),
]

function withEdit(
  memory: SearchedMemory,
  content: string,
  expiresAt: string | undefined,
): SearchedMemory {
  const { expires_at: _, ...rest } = memory
  return { ...rest, content, ...(expiresAt !== undefined && { expires_at: expiresAt }) }
}

type ResultsProps = {
  answer: SearchResponse
  update: (update: (answer: SearchResponse) => SearchResponse) => void
}

function Results({ answer, update }: ResultsProps): View {
  const selection = useSelection()
  const change = (changed: (memories: SearchedMemory[]) => SearchedMemory[]): void =>
    update(answer => ({ ...answer, memories: changed(answer.memories) }))
  const { memories, query, tokenCount, tierBreakdown, windowBreakdown } = answer
  if (memories.length === 0) {
    return emptyNote(
      'Nothing is remembered about this',
      'Try other words, more tiers or a lower importance.',
    )
  }
  const keys = searchTerms(query)
  return html`<div class="stack">
    <p class="quiet">
      ${pluralize(memories.length, 'memory', 'memories')}, ${pluralize(tokenCount, 'token')}:${' '}
      ${formatCount(tierBreakdown.raw)} raw, ${formatCount(tierBreakdown.tier2)} reflections,${' '}
      ${formatCount(tierBreakdown.tier3)} high-level; ${formatCount(windowBreakdown.hot)} hot,${' '}
      ${formatCount(windowBreakdown.working)} working,
      ${formatCount(windowBreakdown.longterm)}${' '} long-term
    </p>
    <ol class="plain results">
      ${memories.map((memory, index) => {
        const { view, met } = highlightMatches(memory.content, keys)
        return html`<li key=${memory.id}>
          ${renderComponent(MemoryCard, {
            memory: fromSearchedMemory(memory),
            text: view,
            selection,
            matchReason: matchReasonView(memory, index + 1, met),
            onChange: (id, { text, expiresAt }) =>
              change(all => all.map(one => (one.id === id ? withEdit(one, text, expiresAt) : one))),
            onDeleted: id => change(all => all.filter(one => one.id !== id)),
          })}
        </li>`
      })}
    </ol>
    ${renderComponent(SelectionBar, {
      selection,
      memories: memories.map(fromSearchedMemory),
      onDeleted: ids => change(all => all.filter(({ id }) => !ids.has(id))),
    })}
  </div>`
}

/** Rank, score, age and common words of a match. */
const matchReasonView = (
  memory: SearchedMemory,
  rank: number,
  matchedWords: readonly string[],
): View =>
  html`<div class="why">
    <span class="why-rank" title="Place in the answer">${rank}</span>
    <span class="why-score">
      <meter min="0" max="1" value=${memory.score} aria-label="Score"></meter>
      <span>${memory.score.toFixed(2)} score</span>
    </span>
    ${reasonChips(memory.why)} ${windowChip(memory.window)}
    <span class="quiet">
      ${
        matchedWords.length > 0
          ? `Has ${matchedWords.length === 1 ? 'a word' : 'words'} of the question: ${matchedWords.join(', ')}`
          : memory.why.includes('words')
            ? ''
            : memory.score < 0.4
              ? 'No word in common and little in meaning: nothing closer was left'
              : 'No word in common: found by what it means'
      }
    </span>
  </div>`
