export type EventLoopYield = () => Promise<void> | undefined

const yieldAfterMs = 10

/** @returns a function to await between steps; it yields when they have blocked the event loop for 10 ms. */
export function createEventLoopYield(): EventLoopYield {
  let since = performance.now()
  return () => {
    if (performance.now() - since < yieldAfterMs) return undefined
    return new Promise(resolve =>
      setImmediate(() => {
        since = performance.now()
        resolve()
      }),
    )
  }
}
