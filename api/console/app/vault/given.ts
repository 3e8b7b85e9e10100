import type { EndpointResponse } from '#api/client/client.ts'
import { html, type View } from '#api/console/app/html.ts'
import { chip, speakerColours } from '#api/console/app/parts/chips.ts'
import { reasonWords } from '#api/console/app/vault/trace-words.ts'
import type { MatchReason } from '#api/contract/generated/types.ts'

export type PrepareAnswer = EndpointResponse<'POST /v1/memory/prepare'>

/** A memory that the model was given. */
export type Given = { line: string; why: readonly MatchReason[]; score?: number | undefined }

/** The memories of a block, each as its line there. */
export function givenOf({ context, memories }: PrepareAnswer): Given[] {
  const lines = context === null ? [] : linesOf(context, memories.length)
  return memories.map(({ why, score }, index) => ({ line: lines[index] ?? '', why, score }))
}

/** The lines of a block, each from its bracket to the next. */
const linesOf = (context: string, count: number): string[] =>
  context
    .split(/\n(?=\[)/)
    .slice(1, 1 + count)
    .map(line => line.split('\n</memory_context>')[0]!)

/** A line of a block without what the model is told of its time and speaker. */
export function partsOf(line: string): { text: string; about: string } {
  const [, about = '', text = line] = /^\[([^\]]*)\] ([\s\S]*)$/.exec(line) ?? []
  return { text, about }
}

const openMax = 3

/** What was recalled for a message, a card each, best first; a block has them by time. */
export function givenCards(given: readonly Given[]): View {
  const sorted = given.toSorted((a, b) => (b.score ?? 0) - (a.score ?? 0))
  const rest = sorted.slice(openMax)
  return html`<ul class="plain rows">
      ${sorted.slice(0, openMax).map(givenCard)}
    </ul>
    ${
      rest.length > 0 &&
      html`<details>
        <summary>${`${rest.length} more`}</summary>
        <ul class="plain rows">
          ${rest.map(givenCard)}
        </ul>
      </details>`
    }`
}

const givenCard = ({ line, why }: Given, index: number): View => {
  const { text, about } = partsOf(line)
  const [ago, , ...speaker] = about.split(' · ')
  return html`<li key=${index} class="row">
    <div class="row-main stack-close">
      <p>${text}</p>
      <p class="quiet" title=${about}>${[ago, ...speaker].join(' · ')}</p>
      <p class="chips">${why.map(reason => chip(reasonWords[reason]))}</p>
    </div>
  </li>`
}

/** What somebody said in a call or a conversation. */
export const saidView = (name: string, role: string, text: string, note = ''): View =>
  html`<article class="memory stack-tight" style=${speakerColours({ role })}>
    <header class="memory-head chips">${chip(name, role)}</header>
    <p class="memory-text">${text}</p>
    ${note && html`<p class="quiet">${note}</p>`}
  </article>`
