import { waitUntil } from '#test/support/wait-until.ts'

const dayMs = 86_400_000
/** Longer than what is told by day takes a test. */
const neededMs = 120_000

/** Waits for the next day where little is left of this one, UTC: what a test then does falls into one day. */
export const waitForTimeInDay = (): Promise<void> =>
  waitUntil('there is time left of the day', () => Date.now() % dayMs < dayMs - neededMs)
