import type { Span } from '#shared/domain/lease.ts'

/** A span of time with ISO ends. */
export const presentSpan = ({ from, to }: Span) => ({
  from: new Date(from).toISOString(),
  to: new Date(to).toISOString(),
})
