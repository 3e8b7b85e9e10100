import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { formatPercent } from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { passResults } from '#api/console/app/org/pass-results.ts'
import { tagChoice } from '#api/console/app/org/shared-card.ts'
import { button } from '#api/console/app/parts/buttons.ts'
import { chip, tagChips, timeView } from '#api/console/app/parts/chips.ts'
import { onSubmit } from '#api/console/app/parts/fields.ts'
import { loadingNote } from '#api/console/app/parts/notes.ts'
import type { OrgTag, ReviewItem } from '#api/contract/generated/types.ts'

export type ReviewAction = 'approve' | 'dismiss' | 'reject'

type Props = {
  item: ReviewItem
  /** The tags of the organization; undefined while they are loaded. */
  tags: readonly OrgTag[] | undefined
  current: boolean
  editing: boolean
  busy: boolean
  onSelect: () => void
  onEdit: (editing: boolean) => void
  onDecide: (action: ReviewAction, tags?: string[]) => void
}

/** A memory of the review queue. The current one has the focus and shows its actions. */
export function reviewCard(props: Props): View {
  const { item, current, editing, busy: disabled, onSelect, onEdit, onDecide } = props
  const sure = `${formatPercent(item.confidence)} sure`
  return html`<article
    class=${current ? 'memory memory-current stack-tight' : 'memory stack-tight'}
    tabindex=${current ? 0 : -1}
    aria-current=${current ? 'true' : undefined}
    aria-label=${`${item.text.slice(0, 80)}, ${sure}`}
    onClick=${onSelect}
  >
    <header class="memory-head chips">
      <span class="memory-who">${item.author}</span>
      ${timeView(item.acquired_at)} ${item.pending && chip('Not shown to members', 'busy')}
      ${chip(sure, item.confidence < 0.4 ? 'bad' : 'busy')}
    </header>
    <p class="memory-text">${item.text}</p>
    ${replacedMemoryView(item)}
    ${editing ? renderComponent(TagsEditor, props) : html`<p>${tagChips(item.tags)}</p>`}
    ${
      current &&
      !editing &&
      html`<footer class="actions">
        ${button('Approve', () => onDecide('approve'), { kind: 'main', disabled })}
        ${button('Dismiss', () => onDecide('dismiss'), { disabled })}
        ${button('Reject', () => onDecide('reject'), { disabled })}
        ${button('Edit tags', () => onEdit(true), { disabled })}
      </footer>`
    }
    ${current && passView(item)}
  </article>`
}

function TagsEditor({ item: { tags: before }, tags, onEdit, onDecide }: Props): View {
  const [chosen, setChosen] = useState<readonly string[]>(before)
  const form = useRef<HTMLFormElement>(null)
  useLayoutEffect(
    () => form.current?.querySelector<HTMLElement>('input, button')?.focus(),
    [tags === undefined],
  )
  if (!tags) return loadingNote('the tags')
  return html`<form
    ref=${form}
    class="stack"
    onSubmit=${onSubmit(() => onDecide('approve', [...chosen]))}
  >
    ${tagChoice({ tags, before, value: chosen, onValue: setChosen })}
    <div class="actions">
      ${button('Approve with these', undefined, { kind: 'main' })}
      ${button('Cancel', () => onEdit(false))}
    </div>
  </form>`
}

/** The memory that the approval removes. */
const replacedMemoryView = ({ replaces }: ReviewItem): View | null =>
  replaces &&
  html`<div>
    <p class="memory-who">Replaces, once approved:</p>
    <p class="memory-text">${replaces.text}</p>
    <p>${tagChips(replaces.tags)}</p>
  </div>`

/** What the passes made of it; the service deletes it after some time. */
const passView = ({ pass }: ReviewItem): View | null =>
  pass.pass1 === null && pass.pass2 === null && pass.pass3 === null
    ? null
    : html`<details>
        <summary>How it came here</summary>
        ${passResults(pass)}
      </details>`
