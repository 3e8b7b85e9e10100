import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { chip, tagChips } from '#api/console/app/parts/chips.ts'
import { onSubmit, inputValue } from '#api/console/app/parts/fields.ts'
import { parseCommaList } from '#api/console/app/org/org-queries.ts'
import { toIsoString, formatDateTime, formatPercent } from '#api/console/app/format.ts'
import type { ReviewAction, ReviewItem } from '#api/console/app/org/review-item.ts'

type Props = {
  item: ReviewItem
  current: boolean
  editing: boolean
  busy: boolean
  onSelect: () => void
  onEdit: (editing: boolean) => void
  onDecide: (action: ReviewAction, tags?: string[]) => void
}

/** A memory of the review queue. The current one has the focus and shows its actions. */
export function ReviewCard(props: Props): View {
  const { item, current, editing, busy, onSelect, onEdit, onDecide } = props
  return html`<article
    class=${current ? 'memory memory-current' : 'memory'}
    tabindex=${current ? 0 : -1}
    aria-current=${current ? 'true' : undefined}
    aria-label=${`${item.text.slice(0, 80)}, sure to ${formatPercent(item.confidence)}`}
    onClick=${onSelect}
  >
    <header class="memory-head">
      <span class="memory-who">${item.author}</span>
      <time datetime=${toIsoString(item.acquired_at)}>${formatDateTime(item.acquired_at)}</time>
      ${item.pending && chip('Not shown to members', 'busy')}
      ${chip(`Sure to ${formatPercent(item.confidence)}`, item.confidence < 0.4 ? 'bad' : 'busy')}
    </header>
    <p class="memory-text">${item.text}</p>
    ${replacedMemoryView(item)}
    ${
      editing
        ? renderComponent(TagsEditor, { tags: item.tags, onEdit, onDecide })
        : html`<p>${tagChips(item.tags)}</p>`
    }
    ${
      current &&
      !editing &&
      html`<footer class="memory-actions">
        <button
          type="button"
          class="button button-main"
          disabled=${busy}
          onClick=${() => onDecide('approve')}
        >
          Approve
        </button>
        <button type="button" class="button" disabled=${busy} onClick=${() => onDecide('dismiss')}>
          Dismiss
        </button>
        <button type="button" class="button" disabled=${busy} onClick=${() => onDecide('reject')}>
          Reject
        </button>
        <button type="button" class="button" disabled=${busy} onClick=${() => onEdit(true)}>
          Edit tags
        </button>
      </footer>`
    }
    ${current && passView(item)}
  </article>`
}

type EditorProps = Pick<Props, 'onEdit' | 'onDecide'> & { tags: string[] }

function TagsEditor({ tags, onEdit, onDecide }: EditorProps): View {
  const [text, setText] = useState(tags.join(', '))
  const input = useRef<HTMLInputElement>(null)
  useLayoutEffect(() => input.current?.focus(), [])
  return html`<form
    class="search-line"
    onSubmit=${onSubmit(() => onDecide('approve', parseCommaList(text)))}
  >
    <label class="field">
      <span class="field-label">Tags, separated by commas</span>
      <input
        ref=${input}
        value=${text}
        onInput=${(event: Event) => setText(inputValue(event))}
        onKeyDown=${(event: KeyboardEvent) => {
          if (event.key === 'Escape') onEdit(false)
        }}
      />
    </label>
    <button class="button button-main">Approve with these</button>
    <button type="button" class="button" onClick=${() => onEdit(false)}>Cancel</button>
  </form>`
}

/** The memories that its approval removes. */
const replacedMemoryView = ({ replaces }: ReviewItem): View | null =>
  replaces &&
  html`<div>
    <p class="memory-who">Replaces, once approved:</p>
    <p class="memory-text">${replaces.text}</p>
    <p>${tagChips(replaces.tags)}</p>
  </div>`

/** The passes' explanation, verbatim; it is deleted after some time. */
const passView = ({ pass }: ReviewItem): View | null =>
  pass.pass1 === null && pass.pass2 === null && pass.pass3 === null
    ? null
    : html`<details>
        <summary>How it came here</summary>
        <pre class="code" tabindex="0">${JSON.stringify(pass, null, 2)}</pre>
      </details>`
