/** The age of an event, as clients see it. */
export type RecencyWindow = 'hot' | 'working' | 'longterm'

const hotMs = 4 * 3600 * 1000
const workingMs = 3 * 24 * 3600 * 1000

/** Under four hours is hot, under three days working, everything older long-term. */
export function recencyWindow(at: number, now: number): RecencyWindow {
  const age = now - at
  if (age < hotMs) return 'hot'
  return age < workingMs ? 'working' : 'longterm'
}
