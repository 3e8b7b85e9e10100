import type { EndpointResponse } from '#api/client/client.ts'
import { formatPercent, pluralize } from '#api/console/app/format.ts'
import { html, type View } from '#api/console/app/html.ts'
import { chip } from '#api/console/app/parts/chips.ts'
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

/** What was recalled for a message, a card each, best first; a block has them by time. */
export const givenCards = (given: readonly Given[]): View =>
  html`<ul class="plain rows">
    ${given
      .toSorted((a, b) => (b.score ?? 0) - (a.score ?? 0))
      .map(({ line, why }, index) => {
        const { text, about } = partsOf(line)
        return html`<li key=${index} class="row">
          <div class="row-main stack-close">
            <p>${text}</p>
            <p class="quiet">${about}</p>
            <p class="chips">${why.map(reason => chip(reasonWords[reason]))}</p>
          </div>
        </li>`
      })}
  </ul>`

/** What was recalled for a message, to be opened. */
export const givenView = (given: readonly Given[], confidence: number | null): View =>
  html`<details open=${given.length > 0}>
    <summary>
      ${
        given.length === 0
          ? 'Nothing was recalled'
          : `Recalled: ${pluralize(given.length, 'memory', 'memories')}${confidence === null ? '' : `, ${formatPercent(confidence)} sure`}`
      }
    </summary>
    <ul class="plain stack-tight">
      ${given.map(
        ({ line, why }) =>
          html`<li class="row">
            ${line}
            <span class="chips">${why.map(reason => chip(reasonWords[reason], 'data'))}</span>
          </li>`,
      )}
    </ul>
  </details>`
