import type { Backend } from '#shared/backend.ts'
import type { DatedRow } from '#shared/memory/date-search.ts'
import type { VaultScope } from '#shared/memory/memory.ts'
import { byPosition, isWithin } from '#shared/memory/time-window.ts'
import { reflectionsBeyond, rowsWithin, type TimelineRead } from '#shared/mongo/timeline.ts'

/** Every row of a window in the order of time, read as long as they are asked for. */
export async function* dumped(
  { mongo }: Pick<Backend, 'mongo'>,
  scope: VaultScope,
  read: TimelineRead & { oldestFirst: boolean },
): AsyncGenerator<DatedRow, void, void> {
  const { window, oldestFirst } = read
  const isBefore = (one: DatedRow, other: DatedRow): boolean => {
    const order = byPosition(one.position, other.position)
    return oldestFirst ? order < 0 : order > 0
  }
  const aside = (await reflectionsBeyond(mongo, scope, read))
    .map((row): DatedRow => ({ ...row, position: { at: window.to.at, id: row.id } }))
    .filter(({ position }) => isWithin(window, position))
    .sort((a, b) => (isBefore(a, b) ? -1 : 1))
  let next = 0
  for await (const within of rowsWithin(mongo, scope, read)) {
    const row: DatedRow = { ...within, position: { at: within.at, id: within.id } }
    while (next < aside.length && isBefore(aside[next]!, row)) yield aside[next++]!
    yield row
  }
  yield* aside.slice(next)
}
