import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { currentCredential } from '#api/console/app/credential.ts'
import { formatPercent } from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { passResults } from '#api/console/app/org/pass-results.ts'
import type { ReviewChange } from '#api/console/app/org/review-queue.ts'
import { tagChoice } from '#api/console/app/org/shared-card.ts'
import { button } from '#api/console/app/parts/buttons.ts'
import { chip, sureChip, tagChips, timeView } from '#api/console/app/parts/chips.ts'
import { onSubmit, textAreaField } from '#api/console/app/parts/fields.ts'
import { loadingNote } from '#api/console/app/parts/notes.ts'
import { selectBox, type Selection } from '#api/console/app/parts/selection.ts'
import type { OrgTag, ReviewItem } from '#api/contract/generated/types.ts'

/** What of a memory is edited, with the focus on it. */
export type Editing = 'tags' | 'text'

type Props = {
  item: ReviewItem
  /** The tags of the organization; undefined while they are loaded. */
  tags: readonly OrgTag[] | undefined
  current: boolean
  /** Undefined: nothing. */
  editing: Editing | undefined
  busy: boolean
  selection: Selection
  onSelect: () => void
  onEdit: (editing: Editing | undefined) => void
  onDecide: (change: ReviewChange) => void
}

/** A memory of the review queue. The current one has the focus and shows its actions. */
export function reviewCard(props: Props): View {
  const { item, current, editing, busy: disabled, selection, onSelect, onEdit, onDecide } = props
  const sure = `${formatPercent(item.confidence)} sure`
  return html`<article
    class=${current ? 'memory memory-current stack-tight' : 'memory stack-tight'}
    tabindex=${current ? 0 : -1}
    aria-current=${current ? 'true' : undefined}
    aria-label=${`${item.text.slice(0, 80)}, ${sure}`}
    onClick=${onSelect}
  >
    <header class="memory-head chips">
      ${selectBox(selection, item.mem_id, item.text.slice(0, 60))}
      <span class="memory-who">${item.author}</span>
      ${timeView(item.acquired_at)} ${item.pending && chip('Not shown to members', 'busy')}
      ${sureChip(item.confidence)}
    </header>
    ${!(editing && mayReword()) && html`<p class="memory-text">${item.text}</p>`}
    ${replacedMemoryView(item)}
    ${editing ? renderComponent(Editor, { ...props, editing }) : html`<p>${tagChips(item.tags)}</p>`}
    ${
      current &&
      !editing &&
      html`<footer class="actions">
        ${button('Approve', () => onDecide({ action: 'approve' }), { kind: 'main', disabled })}
        ${button('Dismiss', () => onDecide({ action: 'dismiss' }), { disabled })}
        ${button('Reject', () => onDecide({ action: 'reject' }), { disabled })}
        ${button('Edit tags', () => onEdit('tags'), { disabled })}
        ${mayReword() && button('Edit words', () => onEdit('text'), { disabled })}
      </footer>`
    }
    ${current && passView(item)}
  </article>`
}

/** A reviewer decides about what members said, and adds nothing of their own. */
export const mayReword = (): boolean => currentCredential()?.reviewer === false

const focused: Record<Editing, string> = { tags: 'input, button', text: 'textarea' }

function Editor({ item, tags, editing, busy: disabled, ...on }: Props & { editing: Editing }) {
  const { tags: before } = item
  const [chosen, setChosen] = useState<readonly string[]>(before)
  const [text, setText] = useState(item.text)
  const form = useRef<HTMLFormElement>(null)
  useLayoutEffect(
    () => form.current?.querySelector<HTMLElement>(focused[editing])?.focus(),
    [tags === undefined],
  )
  if (!tags) return loadingNote('the tags')
  const decide = (action: ReviewChange['action']) => () =>
    on.onDecide({ action, text, tags: () => [...chosen] })
  return html`<form ref=${form} class="stack" onSubmit=${onSubmit(decide('approve'))}>
    ${
      mayReword() &&
      textAreaField({
        label: 'Words',
        value: text,
        onValue: setText,
        required: true,
        maxlength: 32_000,
      })
    }
    ${tagChoice({ tags, before, value: chosen, onValue: setChosen })}
    <div class="actions">
      ${button('Approve with these', undefined, { kind: 'main', disabled })}
      ${mayReword() && button('Save, and decide later', decide('save'), { disabled })}
      ${button('Cancel', () => on.onEdit(undefined))}
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
