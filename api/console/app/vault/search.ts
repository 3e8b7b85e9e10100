import { useState } from 'preact/hooks'
import type { AnswerOf } from '#api/client/client.ts'
import { useDoing } from '#api/console/app/asked.ts'
import { call } from '#api/console/app/call.ts'
import { html, part, type View } from '#api/console/app/html.ts'
import { tierName, windowChip, type Tier } from '#api/console/app/parts/chips.ts'
import { checksField, choiceField, onSubmit, textField } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { emptyNote, faultNote, waitingNote } from '#api/console/app/parts/states.ts'
import { keysOf, marked } from '#api/console/app/vault/highlight.ts'
import { MemoryCard } from '#api/console/app/vault/memory-card.ts'
import { shownOfFound } from '#api/console/app/vault/shown.ts'
import { count, counted } from '#api/console/app/words.ts'

type Answer = AnswerOf<'POST /v1/memory/search'>
type Found = Answer['memories'][number]

const allTiers: readonly Tier[] = [1, 2, 3]

/** What a vault remembers about a question, and why. */
export function Search(): View {
  const [query, setQuery] = useState('')
  const [limit, setLimit] = useState('10')
  const [tiers, setTiers] = useState<readonly Tier[]>(allTiers)
  const [importance, setImportance] = useState('')
  const [session, setSession] = useState('')
  const [answer, setAnswer] = useState<Answer>()
  const doing = useDoing()
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
  const change = (update: (memories: Found[]) => Found[]): void =>
    setAnswer(answer && { ...answer, memories: update(answer.memories) })
  return page({
    title: 'Search',
    words: 'Ask as your product would. Each memory says why it was found.',
    children: html`<form
        class="panel search"
        role="search"
        onSubmit=${onSubmit(() => doing.run(search))}
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
          <button class="button button-main" disabled=${doing.busy}>Search</button>
        </div>
        <details class="options">
          <summary>Options</summary>
          <div class="filters">
            ${choiceField({
              label: 'At most',
              value: limit,
              onValue: setLimit,
              choices: ['5', '10', '20', '50', '200'].map(
                each => [each, `${each} memories`] as const,
              ),
            })}
            ${choiceField({
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
            ${checksField({
              label: 'Tiers',
              value: tiers,
              onValue: setTiers,
              choices: allTiers.map(tier => [tier, tierName(tier)] as const),
            })}
          </div>
        </details>
      </form>
      ${faultNote(doing.fault)} ${doing.busy && !answer && waitingNote('memories')}
      <div aria-live="polite">${answer && resultsOf(answer, change)}</div>`,
  })
}

export const importances: readonly (readonly [string, string])[] = [
  ['', 'any'],
  ...Array.from({ length: 10 }, (_, i) => [`${i + 1}`, `${i + 1} or more`] as const),
]

function changed(memory: Found, content: string, end: string | undefined): Found {
  const { expires_at: _, ...rest } = memory
  return { ...rest, content, ...(end !== undefined && { expires_at: end }) }
}

function resultsOf(answer: Answer, change: (update: (memories: Found[]) => Found[]) => void): View {
  const { memories, query, tokenCount, tierBreakdown, windowBreakdown } = answer
  if (memories.length === 0) {
    return emptyNote(
      'Nothing is remembered about this',
      'Try other words, more tiers or a lower importance.',
    )
  }
  const keys = keysOf(query)
  return html`<div class="stack">
    <p class="quiet">
      ${counted(memories.length, 'memory', 'memories')}, ${counted(tokenCount, 'token')}:${' '}
      ${count(tierBreakdown.raw)} raw, ${count(tierBreakdown.tier2)} reflections,${' '}
      ${count(tierBreakdown.tier3)} high-level; ${count(windowBreakdown.hot)} hot,${' '}
      ${count(windowBreakdown.working)} working, ${count(windowBreakdown.longterm)} long-term
    </p>
    <ol class="plain results">
      ${memories.map((memory, index) => {
        const { view, met } = marked(memory.content, keys)
        return html`<li key=${memory.id}>
          ${part(MemoryCard, {
            memory: shownOfFound(memory),
            text: view,
            why: whyOf(memory, index + 1, met),
            onChange: (id, { text, expires }) =>
              change(all => all.map(one => (one.id === id ? changed(one, text, expires) : one))),
            onGone: id => change(all => all.filter(one => one.id !== id)),
          })}
        </li>`
      })}
    </ol>
  </div>`
}

/** Rank, similarity, age and common words: what the order came from. */
const whyOf = (memory: Found, rank: number, met: readonly string[]): View =>
  html`<div class="why">
    <span class="why-rank" title="Place in the answer">${rank}</span>
    <span class="why-score">
      <meter min="0" max="1" value=${memory.score} aria-label="Similarity"></meter>
      <span>${memory.score.toFixed(2)} similar</span>
    </span>
    ${windowChip(memory.window)}
    <span class="quiet">
      ${
        met.length > 0
          ? `Has ${met.length === 1 ? 'a word' : 'words'} of the question: ${met.join(', ')}`
          : memory.score < 0.2
            ? 'No word in common and little in meaning: nothing closer was left'
            : 'No word in common: found by what it means'
      }
    </span>
  </div>`
