import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { useQuery, useAction } from '#api/console/app/use-query.ts'
import { call, UserError } from '#api/console/app/api-call.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { selectField } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { emptyNote, faultNote, queryView } from '#api/console/app/parts/query-view.ts'
import { useTags, type OrgProps } from '#api/console/app/org/org-queries.ts'
import { ReviewCard } from '#api/console/app/org/review-card.ts'
import { showToast } from '#api/console/app/toasts.ts'
import { pluralize } from '#api/console/app/format.ts'
import type { ReviewAction, ReviewItem } from '#api/console/app/org/review-item.ts'

type ReviewDecision = { item: ReviewItem; action: ReviewAction; at: number }

/** The review queue of memories with uncertain tags, with keyboard shortcuts. */
export function Review({ org }: OrgProps): View {
  const [threshold, setThreshold] = useState('0.6')
  const [sort, setSort] = useState<'least_sure' | 'newest'>('least_sure')
  const reviewQuery = useQuery(
    signal => {
      const query = { threshold: Number(threshold), sort, limit: 200 }
      return call('GET /v1/orgs/:orgId/memories/review', { params: { orgId: org }, query }, signal)
    },
    [org, threshold, sort],
  )
  return page({
    title: 'Review queue',
    description: 'Memories whose tags the classifier doubts, or that contradict a reviewed one.',
    actions: html`<button type="button" class="button" onClick=${reviewQuery.refetch}>
      Refresh
    </button>`,
    children: html`<div class="stack">
      <div class="panel filters" role="group" aria-label="Filters">
        ${selectField({
          label: 'Less sure than',
          value: threshold,
          onValue: setThreshold,
          choices: ['0.4', '0.6', '0.8', '1'].map(
            each => [each, `${Number(each) * 100} %`] as const,
          ),
        })}
        ${selectField({
          label: 'Order',
          value: sort,
          onValue: setSort,
          choices: [
            ['least_sure', 'least sure first'],
            ['newest', 'newest first'],
          ],
        })}
      </div>
      ${queryView(reviewQuery, 'the queue', ({ review }) => renderComponent(Queue, { org, review }))}
    </div>`,
  })
}

function Queue({ org, review }: { org: string; review: ReviewItem[] }): View {
  const queue = useReviewQueue(org, review)
  const { items, at, setAt, editing, setEditing, decide, undo, actionState } = queue
  const list = useRef<HTMLDivElement>(null)
  const tagsQuery = useTags(org)
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
    <div class="review-head">
      <p role="status">
        ${items.length === 0 ? 'Nothing waits' : `${at + 1} of ${pluralize(items.length, 'memory', 'memories')}`}
      </p>
      ${keysHelp}
      <button
        type="button"
        class="button"
        disabled=${!queue.canUndo || actionState.isRunning}
        onClick=${undo}
      >
        Undo
      </button>
    </div>
    ${faultNote(actionState.fault)} ${faultNote(tagsQuery.fault, tagsQuery.refetch)}
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
            ${renderComponent(ReviewCard, {
              item,
              labels: tagsQuery.answer?.map(({ label }) => label),
              current: index === at,
              editing: editing && index === at,
              busy: actionState.isRunning,
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
  const actionState = useAction()
  useEffect(() => {
    setItems(review)
    setAt(0)
  }, [review])
  const decide = (action: ReviewAction, tags?: string[]): void => {
    const item = items[at]
    if (!item) return
    void actionState.run(async () => {
      const body = { action, ...(tags && { tags }) }
      const params = { orgId: org, memId: item.mem_id }
      await call('POST /v1/orgs/:orgId/memories/:memId/review', { params, body })
      setDecided([...decided, { item, action, at }])
      setEditing(false)
      setItems(items.filter(one => one !== item))
      setAt(Math.max(0, Math.min(at, items.length - 2)))
      showToast(`${doneTexts[action](item)} Press u to undo.`)
    })
  }
  const undo = (): void =>
    void actionState.run(async () => {
      const last = decided.at(-1)
      if (!last) throw new UserError('Nothing was decided here yet')
      const params = { orgId: org, memId: last.item.mem_id }
      const route = last.action === 'reject' ? 'restore' : 'review/undo'
      await call(`POST /v1/orgs/:orgId/memories/:memId/${route}`, { params })
      setDecided(decided.slice(0, -1))
      setItems([...items.slice(0, last.at), last.item, ...items.slice(last.at)])
      setAt(last.at)
      showToast('It is in the queue again.')
    })
  return {
    items,
    at,
    setAt,
    editing,
    setEditing,
    canUndo: decided.length > 0,
    decide,
    undo,
    actionState,
  }
}

const keysHelp = html`<p class="keys">
  <span><kbd>j</kbd> <kbd>k</kbd> next, previous</span>
  <span><kbd>a</kbd> approve</span>
  <span><kbd>d</kbd> dismiss</span>
  <span><kbd>r</kbd> reject</span>
  <span><kbd>e</kbd> edit tags</span>
  <span><kbd>u</kbd> undo</span>
</p>`
