import { useEffect, useRef, useState } from 'preact/hooks'
import { toFault, type Fault } from '#api/console/app/api-call.ts'

export type CursorPage<Item> = { items: Item[]; next_cursor: string | null }

export type PagedList<Item> = {
  items: Item[]
  isLoading: boolean
  fault: Fault | undefined
  /** Undefined when there are no more pages. */
  loadMore: (() => void) | undefined
  refetch: () => void
  /** How many pages are loaded. */
  pages: number
  /** Updates the loaded items after a change at the service. */
  updateItems: (update: (items: Item[]) => Item[]) => void
}

/**
 * Loads a list page by page, and again from the first page when a dependency changes.
 *
 * @param pagesAtOnce how many pages are loaded at first, one after the other
 */
export function usePagedList<Item>(
  read: (cursor: string | undefined, signal: AbortSignal) => Promise<CursorPage<Item>>,
  dependencies: readonly unknown[],
  pagesAtOnce = 1,
): PagedList<Item> {
  const [items, setItems] = useState<Item[]>([])
  const [cursor, setCursor] = useState<string | null>(null)
  const [pages, setPages] = useState(0)
  const [waiting, setWaiting] = useState(true)
  const [fault, setFault] = useState<Fault>()
  const [fetchCount, setFetchCount] = useState(0)
  const activeRequest = useRef<AbortController>(undefined)

  const load = (from: string | undefined, number: number, until = number): void => {
    activeRequest.current?.abort()
    const controller = (activeRequest.current = new AbortController())
    setWaiting(true)
    setFault(undefined)
    read(from, controller.signal).then(
      page => {
        if (controller.signal.aborted) return
        setItems(before => (from === undefined ? page.items : [...before, ...page.items]))
        setCursor(page.next_cursor)
        setPages(number)
        if (number < until && page.next_cursor !== null) load(page.next_cursor, number + 1, until)
        else setWaiting(false)
      },
      (error: unknown) => {
        if (controller.signal.aborted) return
        setFault(toFault(error))
        setWaiting(false)
      },
    )
  }
  useEffect(() => {
    setItems([])
    setCursor(null)
    load(undefined, 1, pagesAtOnce)
    return () => activeRequest.current?.abort()
  }, [...dependencies, fetchCount])

  return {
    items,
    isLoading: waiting,
    fault,
    loadMore: cursor === null ? undefined : () => load(cursor, pages + 1),
    pages,
    refetch: () => setFetchCount(fetchCount => fetchCount + 1),
    updateItems: setItems,
  }
}
