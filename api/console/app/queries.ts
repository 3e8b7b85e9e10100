import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import type { EndpointRequest, EndpointResponse, Route } from '#api/client/client.ts'
import { call, toFault, type Fault } from '#api/console/app/api-call.ts'
import { useVaultUser } from '#api/console/app/vault-user.ts'
import { showToast } from '#api/console/app/toasts.ts'

export type QueryState<Answer> = {
  /** The latest answer; it stays while a newer one loads. */
  answer: Answer | undefined
  fault: Fault | undefined
  isLoading: boolean
  refetch: () => void
  /** Updates the answer after a change at the service. */
  update: (update: (answer: Answer) => Answer) => void
}

/**
 * Loads when the view is mounted and whenever a dependency changes; outdated answers are dropped.
 *
 * @param fetchAnswer undefined loads nothing
 */
export function useQuery<Answer>(
  fetchAnswer: ((signal: AbortSignal) => Promise<Answer>) | undefined,
  dependencies: readonly unknown[],
): QueryState<Answer> {
  const [state, setState] = useState<Omit<QueryState<Answer>, 'refetch' | 'update'>>({
    answer: undefined,
    fault: undefined,
    isLoading: fetchAnswer !== undefined,
  })
  const [fetchCount, setFetchCount] = useState(0)
  useEffect(() => {
    if (!fetchAnswer) return undefined
    const controller = new AbortController()
    setState(({ answer }) => ({ answer, fault: undefined, isLoading: true }))
    fetchAnswer(controller.signal).then(
      answer =>
        controller.signal.aborted || setState({ answer, fault: undefined, isLoading: false }),
      (error: unknown) => {
        if (controller.signal.aborted) return
        setState(({ answer }) => ({ answer, fault: toFault(error), isLoading: false }))
      },
    )
    return () => controller.abort()
  }, [...dependencies, fetchCount])
  const refetch = useCallback(() => setFetchCount(fetchCount => fetchCount + 1), [])
  useOnline(state.fault, refetch)
  return {
    ...state,
    refetch,
    update: update =>
      setState(({ answer, ...rest }) => ({
        ...rest,
        answer: answer === undefined ? undefined : update(answer),
      })),
  }
}

/** Tries again when the line is back what has failed while it was down. */
export function useOnline(fault: Fault | undefined, again: () => void): void {
  useEffect(() => {
    if (!fault) return undefined
    addEventListener('online', again)
    return () => removeEventListener('online', again)
  }, [fault])
}

/** Loads the answer of an endpoint, and again when the request changes. */
export function useCall<Name extends Route>(
  route: Name,
  request?: EndpointRequest<Name>,
): QueryState<EndpointResponse<Name>> {
  const user = useVaultUser()
  return useQuery(signal => call(route, request, signal, user), [JSON.stringify(request), user])
}

/** Loads again at every interval, while the tab is in view; never for an interval of undefined. */
export function useRefresh(refetch: () => void, intervalMs: number | undefined): void {
  useEffect(() => {
    if (intervalMs === undefined) return undefined
    const timer = setInterval(() => document.hidden || refetch(), intervalMs)
    return () => clearInterval(timer)
  }, [intervalMs])
}

/** A list, whole or loaded page by page. */
export type Listing<Item> = {
  items: Item[]
  isLoading: boolean
  fault: Fault | undefined
  /** Undefined when there are no more pages. */
  loadMore: (() => void) | undefined
  refetch: () => void
}

/** Loads a list that an endpoint answers whole. The items stay while they are loaded again. */
export function useListing<Name extends Route, Item>(
  route: Name,
  request: EndpointRequest<Name>,
  itemsOf: (answer: EndpointResponse<Name>) => Item[],
): Listing<Item> {
  const { answer, fault, isLoading, refetch } = useCall(route, request)
  const items = answer === undefined ? [] : itemsOf(answer)
  return {
    items,
    fault,
    isLoading: isLoading && answer === undefined,
    loadMore: undefined,
    refetch,
  }
}

type CursorPage<Item> = { items: Item[]; next_cursor: string | null }

export type PagedList<Item> = Listing<Item> & {
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
  const [isLoading, setLoading] = useState(true)
  const [fault, setFault] = useState<Fault>()
  const [fetchCount, setFetchCount] = useState(0)
  const activeRequest = useRef<AbortController>(undefined)

  const load = (from: string | undefined, number: number, until = number): void => {
    activeRequest.current?.abort()
    const controller = (activeRequest.current = new AbortController())
    setLoading(true)
    setFault(undefined)
    read(from, controller.signal).then(
      page => {
        if (controller.signal.aborted) return
        setItems(before => (from === undefined ? page.items : [...before, ...page.items]))
        setCursor(page.next_cursor)
        setPages(number)
        if (number < until && page.next_cursor !== null) load(page.next_cursor, number + 1, until)
        else setLoading(false)
      },
      (error: unknown) => {
        if (controller.signal.aborted) return
        setFault(toFault(error))
        setLoading(false)
      },
    )
  }
  useEffect(() => {
    setItems([])
    setCursor(null)
    load(undefined, 1, pagesAtOnce)
    return () => activeRequest.current?.abort()
  }, [...dependencies, fetchCount])

  const refetch = (): void => setFetchCount(fetchCount => fetchCount + 1)
  useOnline(fault, refetch)
  return {
    items,
    isLoading,
    fault,
    loadMore: cursor === null ? undefined : () => load(cursor, pages + 1),
    pages,
    refetch,
    updateItems: setItems,
  }
}

type PagesRoute = {
  [Name in Route]: EndpointResponse<Name> extends CursorPage<unknown> ? Name : never
}[Route]
type PageItem<Name extends Route> =
  EndpointResponse<Name> extends CursorPage<infer Item> ? Item : never

/** Loads a list of an endpoint page by page, and again when the request changes. */
export function usePages<Name extends PagesRoute>(
  route: Name,
  request: EndpointRequest<Name>,
  pagesAtOnce?: number,
): PagedList<PageItem<Name>> {
  const user = useVaultUser()
  return usePagedList(
    (cursor, signal) =>
      call(route, withCursor(request, cursor), signal, user) as Promise<CursorPage<PageItem<Name>>>,
    [JSON.stringify(request), user],
    pagesAtOnce,
  )
}

const withCursor = <Request extends { query?: object }>(
  request: Request,
  cursor: string | undefined,
): Request => (cursor === undefined ? request : { ...request, query: { ...request.query, cursor } })

export type ActionState = {
  isRunning: boolean
  fault: Fault | undefined
  /** Runs an action, one at a time; a failure goes to `fault`. @returns whether it succeeded */
  run: (action: Action) => Promise<boolean>
}

export type Action = {
  act: () => Promise<unknown>
  /** Displayed after a success. */
  done?: string
  /** Takes it back: a button beside `done`. */
  undo?: () => Promise<unknown>
  /** Called after a success. */
  onDone?: () => void
}

export function useAction(): ActionState {
  const [isRunning, setRunning] = useState(false)
  const [fault, setFault] = useState<Fault>()
  const run: ActionState['run'] = async ({ act, done, undo, onDone }) => {
    if (isRunning) return false
    setRunning(true)
    setFault(undefined)
    try {
      await act()
      if (done !== undefined) {
        const takeBack = (): void => {
          undo!().catch((error: unknown) => showToast(toFault(error).message))
        }
        showToast(done, undo && takeBack)
      }
      onDone?.()
      return true
    } catch (error) {
      setFault(toFault(error))
      return false
    } finally {
      setRunning(false)
    }
  }
  return { isRunning, fault, run }
}

/** Returns a value once it has not changed for a third of a second. */
export function useDebounced<Value>(value: Value, delayMs = 300): Value {
  const [debounced, setDebounced] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setDebounced(value), delayMs)
    return () => clearTimeout(timer)
  }, [value])
  return debounced
}
