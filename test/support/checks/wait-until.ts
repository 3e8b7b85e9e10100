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

const dayMs = 86_400_000
/** Longer than what a file counts by days takes. */
const neededMs = 120_000

/** Waits for the next day of UTC when it begins within two minutes: what a file counts by days is then of one day. */
export async function passMidnight(): Promise<void> {
  const leftMs = dayMs - (Date.now() % dayMs)
  if (leftMs < neededMs) await delay(leftMs + 10)
}
