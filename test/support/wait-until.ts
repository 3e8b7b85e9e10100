import { setTimeout as delay } from 'node:timers/promises'

/** Waits until a condition holds, looking every 10 ms; fails loudly with its name after `withinMs`. */
export async function waitUntil(
  what: string,
  holds: () => boolean | Promise<boolean>,
  withinMs = 10_000,
): Promise<void> {
  const deadline = Date.now() + withinMs
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`not within ${withinMs} ms: ${what}`)
    await delay(10)
  }
}
