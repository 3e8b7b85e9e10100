import type { Memory } from '#shared/domain/memory.ts'

/** The order of rows: by time, then by id. */
export function compareByTime(a: Memory, b: Memory): number {
  if (a.at !== b.at) return a.at - b.at
  return a.id < b.id ? -1 : 1
}
