const startedAt = Date.now() - performance.now()
/** The stores round what their clocks say. */
const roundingMs = 1_000

/** Whether a moment lies between the start of this process and now. */
export const isSinceStart = (at: number | string): boolean => {
  const ms = typeof at === 'string' ? Date.parse(at) : at
  return ms >= startedAt - roundingMs && ms <= Date.now() + roundingMs
}
