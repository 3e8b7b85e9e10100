import { byPosition, isWithin, type TimeWindow } from '#shared/vault/read/time-window.ts'
import { reflectionsBeyond, rowsWithin } from '#shared/vault/read/timeline.mongo.ts'
import type { DatedRow, DatedStrand } from '#shared/vault/read/dated-row.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'

type Dump = { strands: readonly DatedStrand[]; window: TimeWindow; oldestFirst: boolean }

/** Every row of a window in the order of time, from all strands, read as long as they are asked for. */
export async function* dumped(
  backend: { mongo: Mongo },
  { strands, ...dump }: Dump,
): AsyncGenerator<DatedRow, void, void> {
  const isBefore = (one: DatedRow, other: DatedRow): boolean => {
    const order = byPosition(one.position, other.position)
    return dump.oldestFirst ? order < 0 : order > 0
  }
  const lines = strands.map(strand => lineOf(backend, strand, { ...dump, isBefore }))
  try {
    const heads = await Promise.all(lines.map(line => line.next()))
    for (;;) {
      let first = -1
      for (const [index, { value }] of heads.entries()) {
        if (value && (first < 0 || isBefore(value, heads[first]!.value!))) first = index
      }
      if (first < 0) return
      yield heads[first]!.value!
      heads[first] = await lines[first]!.next()
    }
  } finally {
    await Promise.all(lines.map(line => line.return()))
  }
}

type InOrder = Omit<Dump, 'strands'> & { isBefore(one: DatedRow, other: DatedRow): boolean }

async function* lineOf(
  { mongo }: { mongo: Mongo },
  { scope, read: part, source }: DatedStrand,
  { window, oldestFirst, isBefore }: InOrder,
): AsyncGenerator<DatedRow, void, void> {
  const read = { ...part, window, oldestFirst }
  const aside = (await reflectionsBeyond(mongo, scope, read))
    .map((row): DatedRow => ({ ...row, source, position: { at: window.to.at, id: row.id } }))
    .filter(({ position }) => isWithin(window, position))
    .sort((a, b) => (isBefore(a, b) ? -1 : 1))
  let next = 0
  for await (const within of rowsWithin(mongo, scope, read)) {
    const row: DatedRow = { ...within, source, position: { at: within.at, id: within.id } }
    while (next < aside.length && isBefore(aside[next]!, row)) yield aside[next++]!
    yield row
  }
  yield* aside.slice(next)
}
