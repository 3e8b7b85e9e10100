import { useRef, useState } from 'preact/hooks'
import { html, type Children, type View } from '#api/console/app/html.ts'
import { button } from '#api/console/app/parts/buttons.ts'

/** The things of a page that the user has chosen, by id. */
export type Selection = {
  ids: ReadonlySet<string>
  set: (ids: ReadonlySet<string>) => void
  /** The last one that was clicked: with Shift all from there to the next one follow it. */
  last: { current: string | undefined }
}

/** One request of the service changes at most this many. */
const selectedMax = 500

export function useSelection(): Selection {
  const [ids, set] = useState<ReadonlySet<string>>(new Set())
  return { ids, set, last: useRef<string>(undefined) }
}

/** The ids of the boxes of a click: of one, or of all from the last clicked one to this. */
function clickedIds({ last }: Selection, box: HTMLInputElement, extend: boolean): Set<string> {
  const boxes = [...document.querySelectorAll<HTMLInputElement>('.select-box')]
  const from = extend ? boxes.findIndex(({ value }) => value === last.current) : -1
  if (from === -1) return new Set([box.value])
  const to = boxes.indexOf(box)
  return new Set(boxes.slice(Math.min(from, to), Math.max(from, to) + 1).map(({ value }) => value))
}

/** A box that chooses a thing; a click with Shift chooses all from the last one to this. */
export const selectBox = (selection: Selection, id: string, excerpt: string): View => {
  const { ids, set, last } = selection
  const onClick = (event: MouseEvent): void => {
    event.stopPropagation()
    const box = event.currentTarget as HTMLInputElement
    const clicked = clickedIds(selection, box, event.shiftKey)
    last.current = id
    const chosen = box.checked ? [...ids.union(clicked)] : [...ids.difference(clicked)]
    set(new Set(chosen.slice(0, selectedMax)))
  }
  return html`<input
    type="checkbox"
    class="select-box"
    value=${id}
    aria-label=${`Select: ${excerpt}`}
    checked=${ids.has(id)}
    disabled=${!ids.has(id) && ids.size >= selectedMax}
    onClick=${onClick}
  />`
}

/** Chooses all that a page shows, as many as one request takes. */
export const selectAllButton = ({ set }: Selection, shown: readonly string[]): View =>
  button('Choose all shown', () => set(new Set(shown.slice(0, selectedMax))), {
    disabled: shown.length === 0,
  })

/**
 * What can be done with the chosen things. Without a choice there is no bar.
 *
 * @param chosen how many, with their name: `3 memories`; empty for none
 */
export const selectionBar = (
  { set }: Selection,
  { chosen, label, actions }: { chosen: string; label: string; actions: Children },
): View | false =>
  chosen !== '' &&
  html`<div class="selection section-head" role="region" aria-label=${label}>
    <b role="status">${chosen} selected</b>
    <div class="actions">${button('Unselect all', () => set(new Set()))} ${actions}</div>
  </div>`
