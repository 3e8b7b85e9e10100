import { setTimeout as delay } from 'node:timers/promises'

/**
 * Waits until a condition is true, testing every 10 ms. The time only tells a hang: a busy machine stands still for
 * long.
 *
 * @throws Error with its name after `withinMs`
 */
export async function waitUntil(
  what: string,
  isTrue: () => boolean | Promise<boolean>,
  withinMs = 180_000,
): Promise<void> {
  // Not by the clock that tests set.
  const deadline = performance.now() + withinMs
  while (!(await isTrue())) {
    if (performance.now() > deadline) throw new Error(`not within ${withinMs} ms: ${what}`)
    await delay(10)
  }
}
