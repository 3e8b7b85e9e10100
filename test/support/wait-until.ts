import { setTimeout as delay } from 'node:timers/promises'

/** Waits until a condition is true, testing every 10 ms. @throws Error with its name after `withinMs`. */
export async function waitUntil(
  what: string,
  isTrue: () => boolean | Promise<boolean>,
  withinMs = 60_000,
): Promise<void> {
  const deadline = Date.now() + withinMs
  while (!(await isTrue())) {
    if (Date.now() > deadline) throw new Error(`not within ${withinMs} ms: ${what}`)
    await delay(10)
  }
}
