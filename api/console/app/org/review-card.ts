import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { chip, tagChips } from '#api/console/app/parts/chips.ts'
import { onSubmit } from '#api/console/app/parts/fields.ts'
import { loadingNote } from '#api/console/app/parts/query-view.ts'
import { tagChoice } from '#api/console/app/org/tag-choice.ts'
import { toIsoString, formatDateTime, formatPercent } from '#api/console/app/format.ts'
import type { ReviewAction, ReviewItem } from '#api/console/app/org/review-item.ts'

type Props = {
  item: ReviewItem
  /** The tags of the organization; undefined while they are loaded. */
  labels: readonly string[] | undefined
  current: boolean
  editing: boolean
  busy: boolean
  onSelect: () => void
  onEdit: (editing: boolean) => void
  onDecide: (action: ReviewAction, tags?: string[]) => void
}

/** A memory of the review queue. The current one has the focus and shows its actions. */
export function ReviewCard(props: Props): View {
  const { item, labels, current, editing, busy, onSelect, onEdit, onDecide } = props
  return html`<article
    class=${current ? 'memory memory-current' : 'memory'}
    tabindex=${current ? 0 : -1}
    aria-current=${current ? 'true' : undefined}
    aria-label=${`${item.text.slice(0, 80)}, ${formatPercent(item.confidence)} sure`}
    onClick=${onSelect}
  >
    <header class="memory-head">
      <span class="memory-who">${item.author}</span>
      <time datetime=${toIsoString(item.acquired_at)}>${formatDateTime(item.acquired_at)}</time>
      ${item.pending && chip('Not shown to members', 'busy')}
      ${chip(`${formatPercent(item.confidence)} sure`, item.confidence < 0.4 ? 'bad' : 'busy')}
    </header>
    <p class="memory-text">${item.text}</p>
    ${replacedMemoryView(item)}
    ${
      editing
        ? renderComponent(TagsEditor, { tags: item.tags, labels, onEdit, onDecide })
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

type EditorProps = Pick<Props, 'labels' | 'onEdit' | 'onDecide'> & { tags: string[] }

function TagsEditor({ tags, labels, onEdit, onDecide }: EditorProps): View {
  const [chosen, setChosen] = useState<readonly string[]>(tags)
  const form = useRef<HTMLFormElement>(null)
  useLayoutEffect(
    () => form.current?.querySelector<HTMLElement>('input, button')?.focus(),
    [labels],
  )
  if (!labels) return loadingNote('the tags')
  return html`<form
    ref=${form}
    class="stack"
    onSubmit=${onSubmit(() => onDecide('approve', [...chosen]))}
  >
    ${tagChoice({ labels, before: tags, value: chosen, onValue: setChosen })}
    <div class="actions">
      <button class="button button-main">Approve with these</button>
      <button type="button" class="button" onClick=${() => onEdit(false)}>Cancel</button>
    </div>
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
