import { VaultError } from '#api/client/client.ts'
import { toFault, UserError, type Fault } from '#api/console/app/api-call.ts'
import { formatCount } from '#api/console/app/format.ts'
import { html, type View } from '#api/console/app/html.ts'
import { faultNote, progressBar } from '#api/console/app/parts/notes.ts'
import { useAction } from '#api/console/app/queries.ts'
import { useState } from 'preact/hooks'

/** What became of each of several things, in their order. */
export type Outcomes<Item, Answer> = {
  done: (readonly [item: Item, answer: Answer])[]
  failed: (readonly [item: Item, fault: Fault])[]
}

const atOnce = 4
/** A limit of a minute passes in two waits; more is a fault. */
const waitsMax = 4

/**
 * Runs an action for each of several things, four at a time.
 *
 * @param onEnded receives how many have ended
 */
async function forEachItem<Item, Answer>(
  items: readonly Item[],
  act: (item: Item) => Promise<Answer>,
  onEnded: (count: number) => void = () => undefined,
): Promise<Outcomes<Item, Answer>> {
  const outcomes: ({ answer: Answer } | { fault: Fault })[] = []
  let next = 0
  let ended = 0
  const work = async (): Promise<void> => {
    while (next < items.length) {
      const at = next++
      const item = items[at]!
      outcomes[at] = await withinLimits(() => act(item)).then(
        answer => ({ answer }),
        (error: unknown) => ({ fault: toFault(error) }),
      )
      onEnded(++ended)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, work))
  return {
    done: outcomes.flatMap((one, at) => ('answer' in one ? [[items[at]!, one.answer]] : [])),
    failed: outcomes.flatMap((one, at) => ('fault' in one ? [[items[at]!, one.fault]] : [])),
  }
}

/** Waits as long as the service says where it limits requests, and sends again. */
async function withinLimits<Answer>(act: () => Promise<Answer>): Promise<Answer> {
  for (let waits = 0; ; waits++) {
    try {
      return await act()
    } catch (error) {
      const isLimit = error instanceof VaultError && error.status === 429
      if (!isLimit || error.retryAfter === undefined || waits === waitsMax) throw error
      const { retryAfter } = error
      await new Promise(resolve => void setTimeout(resolve, retryAfter * 1_000))
    }
  }
}

type Bulk<Item, Answer> = {
  items: readonly Item[]
  act: (item: Item) => Promise<Answer>
  /** Receives those that succeeded, also where others failed; not called for none. */
  onDone: (done: Outcomes<Item, Answer>['done']) => void
}

/** How many failures are named. */
const namedMax = 5

/**
 * Changes several things at once.
 *
 * @param nameOf how a failure names a thing
 * @returns the function that does it, and its progress and failures as a view
 */
export function useBulk<Item>(nameOf: (item: Item) => string): {
  run: <Answer>(bulk: Bulk<Item, Answer>) => Promise<boolean>
  isRunning: boolean
  view: View
} {
  const { run, isRunning, fault } = useAction()
  const [progress, setProgress] = useState({ done: 0, total: 0 })
  const change = async <Answer>({ items, act, onDone }: Bulk<Item, Answer>): Promise<void> => {
    const total = items.length
    setProgress({ done: 0, total })
    const { done, failed } = await forEachItem(items, act, done => setProgress({ done, total }))
    if (done.length > 0) onDone(done)
    if (failed.length === 0) return
    const [[, first]] = failed as [[Item, Fault]]
    if (total === 1) throw new UserError(first.message, { hint: first.hint })
    const named = failed
      .slice(0, namedMax)
      .map(([item, { message }]) => `${nameOf(item)}: ${message}`)
    const more = failed.length > namedMax ? [`${formatCount(failed.length - namedMax)} more`] : []
    throw new UserError(`${formatCount(failed.length)} of ${formatCount(total)} were not changed`, {
      hint: [...named, ...more].join('. '),
    })
  }
  const words = `${formatCount(progress.done)} of ${formatCount(progress.total)}`
  return {
    run: bulk => run({ act: () => change(bulk) }),
    isRunning,
    view: html`${isRunning && progress.total > 1 && progressBar('Progress', { ...progress, words })}
    ${faultNote(fault)}`,
  }
}
