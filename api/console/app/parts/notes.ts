import type { Fault } from '#api/console/app/api-call.ts'
import { html, type Children, type View } from '#api/console/app/html.ts'
import { button } from '#api/console/app/parts/buttons.ts'
import type { Listing, QueryState } from '#api/console/app/queries.ts'

/** A placeholder while something loads, of the shape of what comes. */
export const loadingNote = (what: string, shape: 'text' | 'rows' | 'page' = 'text'): View =>
  html`<div class=${`waiting waiting-${shape}`} role="status">
    <span class="unseen">Loading ${what}</span>
    ${Array.from({ length: shape === 'text' ? 3 : 6 }, (_, line) => html`<span key=${line} class="waiting-line"></span>`)}
  </div>`

/** Explains an empty list, and offers an action. */
export const emptyNote = (title: string, description: Children, action?: Children): View =>
  html`<div class="empty stack-tight">
    <p><b>${title}</b></p>
    <p class="quiet">${description}</p>
    ${action}
  </div>`

/** A bar, with what it shows in words. */
export const progressBar = (
  label: string,
  { done, total, words }: { done: number; total: number; words?: string },
): View =>
  html`<div class="stack-close">
    <progress max=${Math.max(1, total)} value=${done} aria-label=${label}></progress>
    ${words && html`<span class="quiet" role="status">${words}</span>`}
  </div>`

/** @param retry adds a button that tries again */
export const faultNote = (fault: Fault | undefined, retry?: () => void): View | null =>
  fault
    ? html`<div class="fault stack-tight" role="alert">
        <p class="fault-words">${fault.message}</p>
        ${fault.hint && html`<p>${fault.hint}</p>`} ${retry && button('Try again', retry)}
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

type ListView<Item> = {
  /** What the placeholder says is loaded. */
  what: string
  empty: View | readonly [title: string, description: string]
  show: (items: Item[]) => View | View[]
}

/** The items of a list, with its loading, error and empty states and the button for more. */
export const listView = <Item>(
  { items, isLoading, fault, loadMore, refetch }: Listing<Item>,
  { what, empty, show }: ListView<Item>,
): View => {
  const isEmpty = items.length === 0
  return html`${faultNote(fault, refetch)}
  ${isEmpty ? !isLoading && !fault && emptyView(empty) : show(items)}
  ${
    isLoading && isEmpty
      ? loadingNote(what, 'rows')
      : (loadMore || isLoading) &&
        html`<div class="more">
          ${button(isLoading ? 'Loading …' : 'Show more', loadMore ?? (() => undefined), { disabled: isLoading })}
        </div>`
  }`
}

const emptyView = (empty: ListView<unknown>['empty']): View =>
  'type' in empty ? empty : emptyNote(...empty)

type EditableList<Item> = Omit<ListView<Item>, 'show'> & {
  key: (item: Item) => string | number
  main: (item: Item) => Children
  /** Buttons and links; `dialogButton` is one that asks before it acts. */
  actions?: (item: Item) => Children
  /** The order of the items has a meaning. */
  ordered?: boolean
}

/** A list of rows: what each item is, and what can be done with it. */
export const editableList = <Item>(
  list: Listing<Item>,
  { key, main, actions, ordered = false, ...notes }: EditableList<Item>,
): View =>
  listView(list, {
    ...notes,
    show: items =>
      rows(
        items.map(item => [key(item), row(main(item), actions?.(item))]),
        ordered ? 'ol' : 'ul',
      ),
  })

/** Arrows, j and k go from the link of a row to the next or the one before. */
function moveByKey(event: KeyboardEvent): void {
  const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key]
  const { target, currentTarget } = event
  if (step === undefined || !(target instanceof HTMLElement)) return
  const links = [
    ...(currentTarget as HTMLElement).querySelectorAll<HTMLElement>(
      ':scope > li .line-main > :is(a, .line-text)',
    ),
  ]
  const at = links.indexOf(target)
  const next = at === -1 ? undefined : links[at + step]
  if (!next) return
  event.preventDefault()
  next.focus()
}

export const rows = (
  views: readonly (readonly [key: string | number, view: View])[],
  tag: 'ol' | 'ul' = 'ul',
): View =>
  html`<${tag} class="plain rows" onKeyDown=${moveByKey}>
    ${views.map(([key, view]) => html`<li key=${key}>${view}</li>`)}
  </${tag}>`

/**
 * A row of one line: what it is about, cut where it is too long, and short notes at its end. Where there is little
 * room the notes stand below.
 *
 * @param columns a class that gives each note the place of its column, empty ones too
 */
export const line = (main: Children, notes: readonly Children[], columns = ''): View =>
  html`<div class=${`line ${columns}`}>
    <p class="line-main">${main}</p>
    <p class="line-notes quiet">
      ${notes
        .filter(note => note || columns !== '')
        .map((note, index) => html`<span key=${index}>${note}</span>`)}
    </p>
  </div>`

export const row = (main: Children, actions?: Children): View =>
  html`<article class="row">
    <div class="row-main stack-close">${main}</div>
    ${actions && html`<div class="actions">${actions}</div>`}
  </article>`
