import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { call, UserError } from '#api/console/app/api-call.ts'
import { pluralize } from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { useTags, type OrgProps } from '#api/console/app/org/org-queries.ts'
import { reviewCard, type ReviewAction } from '#api/console/app/org/review-card.ts'
import { button } from '#api/console/app/parts/buttons.ts'
import { filters, selectField, useFilters } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { emptyNote, faultNote, queryView } from '#api/console/app/parts/notes.ts'
import { useAction, useCall } from '#api/console/app/queries.ts'
import type { ReviewItem } from '#api/contract/generated/types.ts'

type ReviewDecision = { item: ReviewItem; action: ReviewAction; at: number }

type Filters = { threshold: string; sort: 'least_sure' | 'newest' }

const unfiltered: Filters = { threshold: '0.6', sort: 'least_sure' }

/** The review queue of memories with uncertain tags, with keyboard shortcuts. */
export function Review({ org }: OrgProps): View {
  const { fields, of } = useFilters(unfiltered)
  const queue = useCall('GET /v1/orgs/:orgId/memories/review', {
    params: { orgId: org },
    query: { threshold: Number(fields.threshold), sort: fields.sort, limit: 200 },
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
        choices: [
          ['least_sure', 'least sure first'],
          ['newest', 'newest first'],
        ],
      }),
    )}
    ${queryView(queue, 'the queue', ({ review }) => renderComponent(Queue, { org, review }))}`,
  })
}

function Queue({ org, review }: { org: string; review: ReviewItem[] }): View {
  const queue = useReviewQueue(org, review)
  const { items, at, setAt, editing, setEditing, decide, undo, isRunning, fault } = queue
  const list = useRef<HTMLDivElement>(null)
  const tags = useTags(org)
  // Shortcuts work where the focus is: it moves to the current memory before the next key.
  useLayoutEffect(() => {
    if (editing) return
    const current = list.current?.querySelector<HTMLElement>('[aria-current]') ?? list.current
    current?.focus()
  }, [at, items.length, editing])

  const keys: Record<string, () => void> = {
    j: () => setAt(Math.min(at + 1, items.length - 1)),
    k: () => setAt(Math.max(at - 1, 0)),
    a: () => decide('approve'),
    d: () => decide('dismiss'),
    r: () => decide('reject'),
    e: () => items.length > 0 && setEditing(true),
    u: undo,
    Escape: () => setEditing(false),
  }
  const onKey = (event: KeyboardEvent): void => {
    const typing = editing && event.key !== 'Escape'
    if (typing || event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return
    event.preventDefault()
    keys[event.key]!()
  }
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
      ${keysHelp} ${button('Undo', undo, { disabled: !queue.canUndo || isRunning })}
    </div>
    ${faultNote(fault)} ${faultNote(tags.fault, tags.refetch)}
    ${
      items.length === 0 &&
      emptyNote(
        'The queue is empty',
        'Memories appear here when the classifier is not sure of their tags.',
      )
    }
    <ol class="plain">
      ${items.map(
        (item, index) =>
          html`<li key=${item.mem_id}>
            ${reviewCard({
              item,
              tags: tags.isLoading || tags.fault ? undefined : tags.items,
              current: index === at,
              editing: editing && index === at,
              busy: isRunning,
              onSelect: () => setAt(index),
              onEdit: setEditing,
              onDecide: decide,
            })}
          </li>`,
      )}
    </ol>
  </div>`
}

const doneTexts: Record<ReviewAction, (item: ReviewItem) => string> = {
  approve: ({ replaces }) => (replaces ? 'Approved; what it replaces is removed.' : 'Approved.'),
  dismiss: () => 'Dismissed; it stays as it is.',
  reject: () => 'Rejected; it is removed.',
}

/** What waits, which memory is current, and what was decided here, latest last. */
function useReviewQueue(org: string, review: ReviewItem[]) {
  const [items, setItems] = useState(review)
  const [at, setAt] = useState(0)
  const [editing, setEditing] = useState(false)
  const [decided, setDecided] = useState<ReviewDecision[]>([])
  const { run, isRunning, fault } = useAction()
  useEffect(() => {
    setItems(review)
    setAt(0)
  }, [review])
  const decide = (action: ReviewAction, tags?: string[]): void => {
    const item = items[at]
    if (!item) return
    const act = async (): Promise<void> => {
      const body = { action, ...(tags && { tags }) }
      const params = { orgId: org, memId: item.mem_id }
      await call('POST /v1/orgs/:orgId/memories/:memId/review', { params, body })
      setDecided([...decided, { item, action, at }])
      setEditing(false)
      setItems(items.filter(one => one !== item))
      setAt(Math.max(0, Math.min(at, items.length - 2)))
    }
    void run({ act, done: `${doneTexts[action](item)} Press u to undo.` })
  }
  const undo = (): void => {
    const act = async (): Promise<void> => {
      const last = decided.at(-1)
      if (!last) throw new UserError('Nothing was decided here yet')
      const params = { orgId: org, memId: last.item.mem_id }
      const route = last.action === 'reject' ? 'restore' : 'review/undo'
      await call(`POST /v1/orgs/:orgId/memories/:memId/${route}`, { params })
      setDecided(decided.slice(0, -1))
      setItems(items.toSpliced(last.at, 0, last.item))
      setAt(last.at)
    }
    void run({ act, done: 'It is in the queue again.' })
  }
  const canUndo = decided.length > 0
  return { items, at, setAt, editing, setEditing, canUndo, decide, undo, isRunning, fault }
}

const keysHelp = html`<p class="keys">
  <span><kbd>j</kbd> <kbd>k</kbd> next, previous</span>
  <span><kbd>a</kbd> approve</span>
  <span><kbd>d</kbd> dismiss</span>
  <span><kbd>r</kbd> reject</span>
  <span><kbd>e</kbd> edit tags</span>
  <span><kbd>u</kbd> undo</span>
</p>`
