import { useEffect, useRef, useState } from 'preact/hooks'
import { faultOf, type Fault } from '#api/console/app/call.ts'

export type Page<Item> = { items: Item[]; next_cursor: string | null }

export type Listing<Item> = {
  items: Item[]
  waiting: boolean
  fault: Fault | undefined
  /** Undefined when everything is there. */
  more: (() => void) | undefined
  again: () => void
  /** Changes the items in place, after the service has changed them. */
  change: (update: (items: Item[]) => Item[]) => void
}

/** Reads a list page by page; anew whenever something in `given` changes. */
export function useListing<Item>(
  read: (cursor: string | undefined, signal: AbortSignal) => Promise<Page<Item>>,
  given: readonly unknown[],
): Listing<Item> {
  const [items, setItems] = useState<Item[]>([])
  const [cursor, setCursor] = useState<string | null>(null)
  const [waiting, setWaiting] = useState(true)
  const [fault, setFault] = useState<Fault>()
  const [turn, setTurn] = useState(0)
  const under = useRef<AbortController>(undefined)

  const load = (from: string | undefined): void => {
    under.current?.abort()
    const gone = (under.current = new AbortController())
    setWaiting(true)
    setFault(undefined)
    read(from, gone.signal).then(
      page => {
        if (gone.signal.aborted) return
        setItems(before => (from === undefined ? page.items : [...before, ...page.items]))
        setCursor(page.next_cursor)
        setWaiting(false)
      },
      (error: unknown) => {
        if (gone.signal.aborted) return
        setFault(faultOf(error))
        setWaiting(false)
      },
    )
  }
  useEffect(() => {
    setItems([])
    setCursor(null)
    load(undefined)
    return () => under.current?.abort()
  }, [...given, turn])

  return {
    items,
    waiting,
    fault,
    more: cursor === null ? undefined : () => load(cursor),
    again: () => setTurn(turn => turn + 1),
    change: setItems,
  }
}
