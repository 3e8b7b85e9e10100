import { useState } from 'preact/hooks'
import type { EndpointResponse } from '#api/client/client.ts'
import { useAction } from '#api/console/app/use-query.ts'
import { call } from '#api/console/app/api-call.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { tierName, windowChip, type Tier } from '#api/console/app/parts/chips.ts'
import { checkboxGroup, selectField, onSubmit, textField } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { emptyNote, faultNote, loadingNote } from '#api/console/app/parts/query-view.ts'
import { searchTerms, highlightMatches } from '#api/console/app/vault/highlight.ts'
import { MemoryCard } from '#api/console/app/vault/memory-card.ts'
import { fromSearchedMemory } from '#api/console/app/vault/displayed-memory.ts'
import { formatCount, pluralize } from '#api/console/app/format.ts'

type SearchResponse = EndpointResponse<'POST /v1/memory/search'>
type SearchedMemory = SearchResponse['memories'][number]

const allTiers: readonly Tier[] = [1, 2, 3]

/** Searches a vault, and displays why each memory matches. */
export function Search(): View {
  const [query, setQuery] = useState('')
  const [limit, setLimit] = useState('10')
  const [tiers, setTiers] = useState<readonly Tier[]>(allTiers)
  const [importance, setImportance] = useState('')
  const [session, setSession] = useState('')
  const [answer, setAnswer] = useState<SearchResponse>()
  const actionState = useAction()
  const search = async (): Promise<void> => {
    const chosen = [...tiers].sort()
    setAnswer(
      await call('POST /v1/memory/search', {
        body: {
          query,
          limit: Number(limit),
          ...(chosen.length > 0 && chosen.length < 3 && { tiers: chosen }),
          ...(importance && { importance: Number(importance) }),
          ...(session && { session_id: session }),
        },
      }),
    )
  }
  const change = (update: (memories: SearchedMemory[]) => SearchedMemory[]): void =>
    setAnswer(answer && { ...answer, memories: update(answer.memories) })
  return page({
    title: 'Search',
    description: 'Ask as your product would. Each memory says why it was found.',
    children: html`<form
        class="panel search"
        role="search"
        onSubmit=${onSubmit(() => actionState.run(search))}
      >
        <div class="search-line">
          ${textField({
            label: 'Question',
            type: 'search',
            value: query,
            onValue: setQuery,
            required: true,
            maxlength: 32_000,
            placeholder: 'What is the name of my cat?',
          })}
          <button class="button button-main" disabled=${actionState.isRunning}>Search</button>
        </div>
        <details class="options">
          <summary>Options</summary>
          <div class="filters">
            ${selectField({
              label: 'At most',
              value: limit,
              onValue: setLimit,
              choices: ['5', '10', '20', '50', '200'].map(
                each => [each, `${each} memories`] as const,
              ),
            })}
            ${selectField({
              label: 'Importance',
              value: importance,
              onValue: setImportance,
              choices: importances,
            })}
            ${textField({
              label: 'Session',
              value: session,
              onValue: setSession,
              maxlength: 256,
              placeholder: 'the core vault',
            })}
            ${checkboxGroup({
              label: 'Tiers',
              value: tiers,
              onValue: setTiers,
              choices: allTiers.map(tier => [tier, tierName(tier)] as const),
            })}
          </div>
        </details>
      </form>
      ${faultNote(actionState.fault)} ${actionState.isRunning && !answer && loadingNote('memories')}
      <div aria-live="polite">${answer && resultsView(answer, change)}</div>`,
  })
}

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

function resultsView(
  answer: SearchResponse,
  change: (update: (memories: SearchedMemory[]) => SearchedMemory[]) => void,
): View {
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
      ${formatCount(windowBreakdown.working)} working, ${formatCount(windowBreakdown.longterm)}
      long-term
    </p>
    <ol class="plain results">
      ${memories.map((memory, index) => {
        const { view, met } = highlightMatches(memory.content, keys)
        return html`<li key=${memory.id}>
          ${renderComponent(MemoryCard, {
            memory: fromSearchedMemory(memory),
            text: view,
            matchReason: matchReasonView(memory, index + 1, met),
            onChange: (id, { text, expiresAt }) =>
              change(all => all.map(one => (one.id === id ? withEdit(one, text, expiresAt) : one))),
            onDeleted: id => change(all => all.filter(one => one.id !== id)),
          })}
        </li>`
      })}
    </ol>
  </div>`
}

/** Rank, similarity, age and common words of a match. */
const matchReasonView = (
  memory: SearchedMemory,
  rank: number,
  matchedWords: readonly string[],
): View =>
  html`<div class="why">
    <span class="why-rank" title="Place in the answer">${rank}</span>
    <span class="why-score">
      <meter min="0" max="1" value=${memory.score} aria-label="Similarity"></meter>
      <span>${memory.score.toFixed(2)} similar</span>
    </span>
    ${windowChip(memory.window)}
    <span class="quiet">
      ${
        matchedWords.length > 0
          ? `Has ${matchedWords.length === 1 ? 'a word' : 'words'} of the question: ${matchedWords.join(', ')}`
          : memory.score < 0.2
            ? 'No word in common and little in meaning: nothing closer was left'
            : 'No word in common: found by what it means'
      }
    </span>
  </div>`
