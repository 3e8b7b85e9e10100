import type { QueryState } from '#api/console/app/use-query.ts'
import type { Fault } from '#api/console/app/api-call.ts'
import { html, type Children, type View } from '#api/console/app/html.ts'

/** Lines in the shape of what is on its way. */
export const loadingNote = (what: string, lines = 3): View =>
  html`<div class="waiting" role="status">
    <span class="unseen">Loading ${what}</span>
    ${Array.from({ length: lines }, (_, line) => html`<span key=${line} class="waiting-line"></span>`)}
  </div>`

/** Nothing is there: what that means, and what could be done about it. */
export const emptyNote = (title: string, words: Children, action?: Children): View =>
  html`<div class="empty">
    <p class="empty-title">${title}</p>
    <p class="quiet">${words}</p>
    ${action}
  </div>`

/** @param again offers another try */
export const faultNote = (fault: Fault | undefined, again?: () => void): View | null =>
  fault
    ? html`<div class="fault" role="alert">
        <p class="fault-words">${fault.message}</p>
        ${fault.hint && html`<p>${fault.hint}</p>`}
        ${again && html`<button type="button" class="button" onClick=${again}>Try again</button>`}
      </div>`
    : null

/** The button below a list that goes on. */
export const moreButton = (more: (() => void) | undefined, waiting: boolean): View | null =>
  more || waiting
    ? html`<div class="more">
        <button type="button" class="button" disabled=${waiting} onClick=${more}>
          ${waiting ? 'Loading …' : 'Show more'}
        </button>
      </div>`
    : null

/** What was asked for, in whichever state it is. */
export const queryView = <Answer>(
  { answer, fault, isLoading, refetch }: QueryState<Answer>,
  what: string,
  show: (answer: Answer) => View,
): View | null => {
  if (fault) return faultNote(fault, refetch)
  if (answer !== undefined) return show(answer)
  return isLoading ? loadingNote(what) : null
}
