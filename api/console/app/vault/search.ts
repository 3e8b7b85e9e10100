import { useEffect, useState } from 'preact/hooks'
import { call, filled } from '#api/console/app/api-call.ts'
import { formatCount, pluralize } from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { useAddress } from '#api/console/app/address.ts'
import { button } from '#api/console/app/parts/buttons.ts'
import { chip, tierName, windowChip, type Labels } from '#api/console/app/parts/chips.ts'
import {
  bindFields,
  checkboxGroup,
  onSubmit,
  selectField,
  textField,
} from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { emptyNote, faultNote, loadingNote } from '#api/console/app/parts/notes.ts'
import { useSelection } from '#api/console/app/parts/selection.ts'
import { useQuery } from '#api/console/app/queries.ts'
import { useVaultUser } from '#api/console/app/vault-user.ts'
import { fromFound } from '#api/console/app/vault/displayed-memory.ts'
import { highlightMatches, searchTerms } from '#api/console/app/vault/highlight.ts'
import { MemoryCard } from '#api/console/app/vault/memory-card.ts'
import { selectedMemoriesBar } from '#api/console/app/vault/selected-memories.ts'
import words from '#api/console/app/vault/words.json' with { type: 'json' }
import type {
  MatchReason,
  RecalledMemory,
  SearchAnswer,
  Tier,
} from '#api/contract/generated/types.ts'

const allTiers: readonly Tier[] = [1, 2, 3]

/** The fields of a search in the address of the page. */
const defaults = { query: '', limit: '10', tiers: '1,2,3', importance: '', session: '', as_of: '' }
type Fields = typeof defaults
type SetFields = (changed: Partial<Fields>) => void

/** Searches a vault, and displays why each memory matches. */
export function Search(): View {
  const user = useVaultUser()
  const { fields, setFields, visits } = useAddress(defaults)
  const [form, setForm] = useState(fields)
  useEffect(() => setForm(fields), [visits])
  const set: SetFields = changed => setForm({ ...form, ...changed })
  const result = useQuery(
    fields.query === '' ? undefined : signal => fetchMatches(fields, signal, user),
    [...Object.values(fields), user],
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
    children: html`<form class="panel stack" role="search" onSubmit=${onSubmit(search)}>
        <div class="search-line">
          ${textField({
            label: 'Question',
            type: 'search',
            ...bindFields(form, set)('query'),
            required: true,
            maxlength: 32_000,
            placeholder: 'What is the name of my cat?',
          })}
          ${button('Search', undefined, { kind: 'main', disabled: result.isLoading })}
        </div>
        ${optionFields(form, set)}
      </form>
      ${faultNote(result.fault)} ${result.isLoading && !answer && loadingNote('memories', 'rows')}
      <div aria-live="polite">
        ${answer && renderComponent(Results, { answer, update: result.update })}
      </div>`,
  })
}

function fetchMatches(
  { query, limit, tiers, importance, session, as_of }: Fields,
  signal: AbortSignal,
  user: string | undefined,
): Promise<Matches> {
  const chosen = tiersIn(tiers)
  const body = {
    query,
    limit: Number(limit),
    ...(chosen.length > 0 && chosen.length < 3 && { tiers: chosen }),
    ...(importance && { importance: Number(importance) }),
    ...filled({ session_id: session, as_of }),
  }
  return call('POST /v1/memory/search', { body }, signal, user)
}

const tiersIn = (text: string): Tier[] => allTiers.filter(tier => text.includes(String(tier)))

function optionFields(form: Fields, set: SetFields): View {
  const of = bindFields(form, set)
  return html`<details class="options">
    <summary>Options</summary>
    <div class="filters">
      ${selectField({
        label: 'At most',
        ...of('limit'),
        choices: ['5', '10', '20', '50', '200'].map(each => [each, `${each} memories`] as const),
      })}
      ${selectField({ label: 'Importance', ...of('importance'), choices: importances })}
      ${textField({ label: 'Session', ...of('session'), maxlength: 256, placeholder: 'the core vault' })}
      ${textField({ label: 'As of', type: 'date', ...of('as_of') })}
      ${checkboxGroup({
        label: 'Tiers',
        value: tiersIn(form.tiers),
        onValue: tiers => set({ tiers: tiers.toSorted().join(',') }),
        choices: allTiers.map(tier => [tier, tierName(tier)] as const),
      })}
    </div>
  </details>`
}

export const importances: readonly (readonly [string, string])[] = [
  ['', 'any'],
  ...Array.from({ length: 10 }, (_, i) => [`${i + 1}`, `${i + 1} or more`] as const),
]

type Match = Omit<RecalledMemory, 'expires_at'> & { expires_at?: string | undefined }
type Matches = Omit<SearchAnswer, 'memories'> & { memories: Match[] }
type ResultsProps = { answer: Matches; update: (update: (answer: Matches) => Matches) => void }

function Results({ answer, update }: ResultsProps): View {
  const selection = useSelection()
  const change = (changed: (memories: Match[]) => Match[]): void =>
    update(answer => ({ ...answer, memories: changed(answer.memories) }))
  const { memories, query, tokenCount, tierBreakdown, windowBreakdown } = answer
  if (memories.length === 0) {
    return emptyNote(
      'Nothing is remembered about this',
      'Try other words, more tiers or a lower importance.',
    )
  }
  const terms = searchTerms(query)
  const { raw, tier2, tier3 } = tierBreakdown
  const { hot, working, longterm } = windowBreakdown
  const parts = [
    [raw, 'as said'],
    [tier2, 'reflections'],
    [tier3, 'high-level'],
    [hot, 'of the last 4 hours'],
    [working, 'of the last 3 days'],
    [longterm, 'older'],
  ] as const
  const counts = parts.flatMap(([count, words]) =>
    count > 0 ? `${formatCount(count)} ${words}` : [],
  )
  const summary = `${pluralize(memories.length, 'memory', 'memories')}, ${pluralize(tokenCount, 'token')}: ${counts.join(', ')}`
  return html`<div class="stack">
    <p class="quiet">${summary}</p>
    <ol class="plain results">
      ${memories.map((memory, index) => {
        const { view, met } = highlightMatches(memory.content, terms)
        return html`<li key=${memory.id}>
          ${renderComponent(MemoryCard, {
            memory: fromFound(memory),
            text: view,
            selection,
            matchReason: matchReasonView(memory, index + 1, met),
            onChange: (id, { text, ...changed }) =>
              change(all =>
                all.map(one =>
                  one.id === id ? { ...one, ...changed, content: text ?? one.content } : one,
                ),
              ),
            onDeleted: id => change(all => all.filter(one => one.id !== id)),
          })}
        </li>`
      })}
    </ol>
    ${selectedMemoriesBar({
      selection,
      memories: memories.map(fromFound),
      onDeleted: ids => change(all => all.filter(({ id }) => !ids.has(id))),
    })}
  </div>`
}

/** What a memory was found by, as a label and a sentence. */
const matchReasons = words.matches as Labels<MatchReason>

/** Rank, score, age and common words of a match. */
const matchReasonView = (memory: Match, rank: number, matchedWords: readonly string[]): View =>
  html`<div class="why">
    ${chip(rank, 'data', 'Place in the answer')}
    <span class="why-score">
      <meter min="0" max="1" value=${memory.score} aria-label="Score"></meter>
      <span>${memory.score.toFixed(2)} score</span>
    </span>
    ${memory.why.map(reason => chip(matchReasons[reason][0], 'data', matchReasons[reason][1]))}
    ${windowChip(memory.window)}
    <span class="quiet">
      ${
        matchedWords.length > 0
          ? `Has ${matchedWords.length === 1 ? 'a word' : 'words'} of the question: ${matchedWords.join(', ')}`
          : memory.why.includes('words')
            ? ''
            : memory.score < 0.4
              ? 'No word in common and little in meaning: nothing closer was left'
              : 'No word in common: found by its meaning'
      }
    </span>
  </div>`
