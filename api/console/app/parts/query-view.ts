import type { QueryState } from '#api/console/app/use-query.ts'
import type { Fault } from '#api/console/app/api-call.ts'
import { html, type Children, type View } from '#api/console/app/html.ts'

/** A placeholder while something loads. */
export const loadingNote = (what: string, lines = 3): View =>
  html`<div class="waiting" role="status">
    <span class="unseen">Loading ${what}</span>
    ${Array.from({ length: lines }, (_, line) => html`<span key=${line} class="waiting-line"></span>`)}
  </div>`

/** Explains an empty list, and offers an action. */
export const emptyNote = (title: string, description: Children, action?: Children): View =>
  html`<div class="empty">
    <p class="empty-title">${title}</p>
    <p class="quiet">${description}</p>
    ${action}
  </div>`

/** @param retry adds a button that tries again */
export const faultNote = (fault: Fault | undefined, retry?: () => void): View | null =>
  fault
    ? html`<div class="fault" role="alert">
        <p class="fault-words">${fault.message}</p>
        ${fault.hint && html`<p>${fault.hint}</p>`}
        ${retry && html`<button type="button" class="button" onClick=${retry}>Try again</button>`}
      </div>`
    : null

/** The button that loads the next page of a list. */
export const moreButton = (more: (() => void) | undefined, waiting: boolean): View | null =>
  more || waiting
    ? html`<div class="more">
        <button type="button" class="button" disabled=${waiting} onClick=${more}>
          ${waiting ? 'Loading …' : 'Show more'}
        </button>
      </div>`
    : null

/** A query's result, or its loading or error state. */
export const queryView = <Answer>(
  { answer, fault, isLoading, refetch }: QueryState<Answer>,
  what: string,
  show: (answer: Answer) => View,
): View | null => {
  if (fault) return faultNote(fault, refetch)
  if (answer !== undefined) return show(answer)
  return isLoading ? loadingNote(what) : null
}
