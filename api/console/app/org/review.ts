import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { filled } from '#api/console/app/api-call.ts'
import { pluralize } from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { tagFilter, useTags, type OrgProps } from '#api/console/app/org/org-queries.ts'
import { retagButton } from '#api/console/app/org/retag.ts'
import { mayReword, reviewCard, type Editing } from '#api/console/app/org/review-card.ts'
import { useReviewQueue, type ReviewChange } from '#api/console/app/org/review-queue.ts'
import { button } from '#api/console/app/parts/buttons.ts'
import { filters, selectField, textField, useFilters } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { emptyNote, faultNote, queryView } from '#api/console/app/parts/notes.ts'
import { selectAllButton, selectionBar, useSelection } from '#api/console/app/parts/selection.ts'
import { useCall, type Listing } from '#api/console/app/queries.ts'
import type { OrgTag, ReviewItem } from '#api/contract/generated/types.ts'

type Filters = { threshold: string; sort: 'least_sure' | 'newest'; author: string; tag: string }

const unfiltered: Filters = { threshold: '0.6', sort: 'least_sure', author: '', tag: '' }

/** The review queue of memories with uncertain tags, with keyboard shortcuts. */
export function Review({ org }: OrgProps): View {
  const { fields, of } = useFilters(unfiltered)
  const { threshold, sort, author, tag } = fields
  const tags = useTags(org)
  const queue = useCall('GET /v1/orgs/:orgId/memories/review', {
    params: { orgId: org },
    query: { threshold: Number(threshold), sort, limit: 200, ...filled({ author, tag }) },
  })
  return page({
    title: 'Review queue',
    description: 'Memories whose tags the classifier doubts, or that contradict a reviewed one.',
    actions: button('Refresh', queue.refetch),
    children: html`${filters(
      selectField({
        label: 'Less sure than',
        ...of('threshold'),
        choices: ['0.4', '0.6', '0.8', '1'].map(each => [each, `${Number(each) * 100} %`] as const),
      }),
      selectField({
        label: 'Order',
        ...of('sort'),
        choices: { least_sure: 'least sure first', newest: 'newest first' },
      }),
      textField({
        label: 'Author',
        ...of('author'),
        maxlength: 320,
        suggestions: useAuthors(queue.answer?.review),
      }),
      tagFilter(tags.items, of('tag')),
    )}
    ${queryView(queue, 'the queue', ({ review }) =>
      renderComponent(Queue, { org, review, tags, isFiltered: author + tag !== '' }),
    )}`,
  })
}

/** The authors of all that was listed since the page was opened. */
function useAuthors(review: readonly ReviewItem[] = []): string[] {
  const seen = useRef(new Set<string>()).current
  for (const { author } of review) seen.add(author)
  return [...seen].sort()
}

type QueueProps = { org: string; review: ReviewItem[]; tags: Listing<OrgTag>; isFiltered: boolean }

function Queue({ org, review, tags, isFiltered }: QueueProps): View {
  const queue = useReviewQueue(org, review)
  const { items, at, setAt, decide, undoLast, isRunning, view } = queue
  const [editing, setEditing] = useState<Editing>()
  const selection = useSelection()
  const list = useRef<HTMLDivElement>(null)
  // Shortcuts work where the focus is: it moves to the current memory before the next key.
  useLayoutEffect(() => {
    if (editing || isTypedElsewhere(list.current)) return
    const current = list.current?.querySelector<HTMLElement>('[aria-current]') ?? list.current
    current?.focus()
  }, [at, items.length, editing, queue.decisions])

  const chosen = items.filter(({ mem_id }) => selection.ids.has(mem_id))
  const current = items.slice(at, at + 1)
  const decideOne = (change: ReviewChange): void =>
    decide(current, change, () => setEditing(undefined))
  const decideChosen = (change: ReviewChange): void =>
    decide(chosen, change, () => selection.set(new Set()))
  const edit = (what: Editing): void => {
    if (items.length > 0) setEditing(what)
  }
  const keys: Record<string, () => void> = {
    j: () => setAt(Math.min(at + 1, items.length - 1)),
    k: () => setAt(Math.max(at - 1, 0)),
    a: () => decideOne({ action: 'approve' }),
    d: () => decideOne({ action: 'dismiss' }),
    r: () => decideOne({ action: 'reject' }),
    e: () => edit('tags'),
    ...(mayReword() && { w: () => edit('text') }),
    x: () =>
      selection.set(selection.ids.symmetricDifference(new Set(current.map(one => one.mem_id)))),
    u: () => undoLast?.(),
    Escape: () => setEditing(undefined),
  }
  const onKey = (event: KeyboardEvent): void => {
    const typing = editing && event.key !== 'Escape'
    if (typing || event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return
    event.preventDefault()
    keys[event.key]!()
  }
  const disabled = isRunning
  return html`<div
      ref=${list}
      class="stack"
      tabindex="-1"
      onKeyDown=${onKey}
      role="group"
      aria-label="Queue"
    >
      <div class="section-head">
        <p role="status">
          ${items.length === 0 ? 'Nothing waits' : `${at + 1} of ${pluralize(items.length, 'memory', 'memories')}`}
        </p>
        ${keysHelp()}
        <div class="actions">
          ${selectAllButton(
            selection,
            items.map(({ mem_id }) => mem_id),
          )}
          ${button('Undo', undoLast ?? (() => undefined), { disabled: !undoLast || disabled })}
        </div>
      </div>
      ${view} ${faultNote(tags.fault, tags.refetch)}
      ${items.length === 0 && emptyQueueNote(isFiltered)}
      <ol class="plain">
        ${items.map(
          (item, index) =>
            html`<li key=${item.mem_id}>
              ${reviewCard({
                item,
                tags: tags.isLoading || tags.fault ? undefined : tags.items,
                current: index === at,
                editing: index === at ? editing : undefined,
                busy: isRunning,
                selection,
                onSelect: () => editing || setAt(index),
                onEdit: setEditing,
                onDecide: decideOne,
              })}
            </li>`,
        )}
      </ol>
    </div>
    ${selectionBar(selection, {
      chosen: chosen.length === 0 ? '' : pluralize(chosen.length, 'memory', 'memories'),
      label: 'Selected memories',
      actions: html`${retagButton({
        org,
        chosen: chosen.map(({ tags }) => tags),
        approves: mayReword() ? 'choice' : 'always',
        onRetag: (tags, approve) => decideChosen({ action: approve ? 'approve' : 'save', tags }),
      })}
      ${button('Dismiss selected', () => decideChosen({ action: 'dismiss' }), { disabled })}
      ${button('Reject selected', () => decideChosen({ action: 'reject' }), { disabled })}
      ${button('Approve selected', () => decideChosen({ action: 'approve' }), { kind: 'main', disabled })}`,
    })}`
}

/** Whether the user is writing in a field outside of the queue, such as a filter. */
const isTypedElsewhere = (list: HTMLElement | null): boolean => {
  const { activeElement } = document
  return (
    activeElement !== null &&
    activeElement.matches('input, select') &&
    !list?.contains(activeElement)
  )
}

const emptyQueueNote = (isFiltered: boolean): View =>
  isFiltered
    ? emptyNote('Nothing matches', 'Fewer filters show more.')
    : emptyNote(
        'The queue is empty',
        'Memories appear here when the classifier is not sure of their tags.',
      )

const keysHelp = (): View =>
  html`<p class="keys">
    <span><kbd>j</kbd> <kbd>k</kbd> next, previous</span>
    <span><kbd>a</kbd> approve</span>
    <span><kbd>d</kbd> dismiss</span>
    <span><kbd>r</kbd> reject</span>
    <span><kbd>e</kbd> edit tags</span>
    ${mayReword() && html`<span><kbd>w</kbd> edit words</span>`}
    <span><kbd>x</kbd> select</span>
    <span><kbd>u</kbd> undo</span>
  </p>`
