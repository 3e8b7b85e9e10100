import { useEffect, useRef, useState } from 'preact/hooks'
import { call } from '#api/console/app/api-call.ts'
import { useBulk } from '#api/console/app/bulk.ts'
import { pluralize } from '#api/console/app/format.ts'
import type { TagChange } from '#api/console/app/org/retag.ts'
import { showToast } from '#api/console/app/toasts.ts'
import type { ReviewItem } from '#api/contract/generated/types.ts'

/** What is done with memories of the queue: `save` changes them, and they wait on. */
export type ReviewChange = {
  action: 'approve' | 'dismiss' | 'reject' | 'save'
  tags?: TagChange
  text?: string
}

/** What was decided at once, and can be undone. */
type ReviewDecision = {
  action: ReviewChange['action']
  /** As they were before it. */
  items: readonly ReviewItem[]
  /** The ids of those whose words it changed. */
  reworded: ReadonlySet<string>
  /** The order of the queue before it. */
  order: readonly string[]
}

type QueueState = { items: readonly ReviewItem[]; at: number; decisions: readonly ReviewDecision[] }

const toParams = (org: string, { mem_id: memId }: ReviewItem) => ({ orgId: org, memId })

/** @returns the memory as it is now. */
async function decide(org: string, item: ReviewItem, change: ReviewChange): Promise<ReviewItem> {
  const { action, tags, text } = change
  const changed = {
    ...(tags && { tags: tags(item.tags) }),
    ...(text !== undefined && text !== item.text && { text }),
  }
  const params = toParams(org, item)
  const memory =
    action === 'save'
      ? await call('PATCH /v1/orgs/:orgId/memories/:memId', {
          params,
          body: { ...changed, reviewed: false },
        })
      : await call('POST /v1/orgs/:orgId/memories/:memId/review', {
          params,
          body: { action, ...changed },
        })
  return { ...item, text: memory.text, tags: memory.tags }
}

async function undoDecision(
  org: string,
  item: ReviewItem,
  { action, reworded }: ReviewDecision,
): Promise<void> {
  const params = toParams(org, item)
  if (action !== 'save') await call('POST /v1/orgs/:orgId/memories/:memId/review/undo', { params })
  // The undo of a review leaves the words.
  const text = reworded.has(item.mem_id) && { text: item.text }
  if (!text && action !== 'save') return
  const body = { ...text, tags: item.tags, reviewed: false }
  await call('PATCH /v1/orgs/:orgId/memories/:memId', { params, body })
}

const doneTexts: Record<ReviewChange['action'], string> = {
  approve: 'Approved',
  dismiss: 'Dismissed, with no change',
  reject: 'Rejected and removed',
  save: 'Saved',
}

function doneText(action: ReviewChange['action'], items: readonly ReviewItem[]): string {
  const count = items.length === 1 ? '' : `: ${pluralize(items.length, 'memory', 'memories')}`
  const replaced = items.filter(({ replaces }) => replaces !== null).length
  return `${doneTexts[action]}${count}.${action === 'approve' && replaced > 0 ? ' What is replaced is removed.' : ''}`
}

const undoneText = ({ length }: readonly ReviewItem[]): string =>
  length === 1 ? 'It is as it was.' : 'They are as they were.'

/** The order of a queue with some of its former memories back in their places. */
function putBack(
  queue: readonly ReviewItem[],
  back: readonly ReviewItem[],
  order: readonly string[],
): ReviewItem[] {
  const returned = new Map(back.map(item => [item.mem_id, item]))
  const rest = queue.filter(({ mem_id }) => !returned.has(mem_id))
  const known = new Map([...rest, ...back].map(item => [item.mem_id, item]))
  const ordered = order.flatMap(id => known.get(id) ?? [])
  return [...new Set([...ordered, ...rest])]
}

/**
 * What waits, which memory is current, and what was decided here.
 *
 * @param review as the service lists it
 */
export function useReviewQueue(org: string, review: readonly ReviewItem[]) {
  const [queue, setQueue] = useState<QueueState>({ items: review, at: 0, decisions: [] })
  const { run, isRunning, view } = useBulk<ReviewItem>(({ text }) => `“${text.slice(0, 60)}”`)
  useEffect(() => {
    setQueue(before => ({ ...before, items: review, at: 0 }))
  }, [review])

  // Its toast still offers what a key has undone.
  const undone = useRef(new WeakSet<ReviewDecision>()).current
  const undo = (decision: ReviewDecision): void => {
    if (undone.has(decision)) return showToast(undoneText(decision.items))
    const onDone = (done: (readonly [ReviewItem, unknown])[]): void => {
      const back = done.map(([item]) => item)
      const left = decision.items.filter(item => !back.includes(item))
      undone.add(decision)
      setQueue(({ items: before, decisions }) => {
        const items = putBack(before, back, decision.order)
        return {
          items,
          at: items.indexOf(back[0]!),
          decisions: decisions.flatMap(one =>
            one !== decision ? [one] : left.length > 0 ? [{ ...one, items: left }] : [],
          ),
        }
      })
      showToast(undoneText(back))
    }
    void run({ items: decision.items, act: item => undoDecision(org, item, decision), onDone })
  }

  const decideAll = (
    wanted: readonly ReviewItem[],
    change: ReviewChange,
    onEnd: () => void,
  ): void => {
    const order = queue.items.map(({ mem_id }) => mem_id)
    const { action } = change
    const onDone = (done: (readonly [before: ReviewItem, after: ReviewItem])[]): void => {
      const items = done.map(([before]) => before)
      const reworded = new Set(
        done.flatMap(([before, after]) => (before.text === after.text ? [] : [before.mem_id])),
      )
      const decision: ReviewDecision = { action, items, reworded, order }
      const after = new Map(done.map(([, now]) => [now.mem_id, now]))
      setQueue(({ items: before, at, decisions }) => {
        const left =
          action === 'save'
            ? before.map(item => after.get(item.mem_id) ?? item)
            : before.filter(item => !after.has(item.mem_id))
        const current = left.findIndex(item => item.mem_id === before[at]?.mem_id)
        return {
          items: left,
          at: current >= 0 ? current : Math.max(0, Math.min(at, left.length - 1)),
          decisions: [...decisions, decision],
        }
      })
      onEnd()
      showToast(doneText(action, items), () => undo(decision))
    }
    void run({ items: wanted, act: item => decide(org, item, change), onDone })
  }

  const { items, at, decisions } = queue
  return {
    items,
    at,
    setAt: (at: number) => setQueue(before => ({ ...before, at })),
    decide: decideAll,
    undoLast: decisions.length > 0 ? () => undo(decisions.at(-1)!) : undefined,
    /** Rises with every decision. */
    decisions: decisions.length,
    isRunning,
    view,
  }
}
