import type { LeftOutPiece } from '#shared/domain/turn/read-text.ts'

/** How many pieces of a proxied message were left out, by the mark of the program. */
export type LeftOutCounts = { [mark: string]: number }

export type LeftOutTotal = { mark: string; pieces: number; characters: number }

/** The pieces and characters of each mark, in the order of their first pieces. */
export function totalLeftOut(pieces: readonly LeftOutPiece[]): LeftOutTotal[] {
  const totals = new Map<string, LeftOutTotal>()
  for (const { mark, characters } of pieces) {
    const total = totals.get(mark) ?? { mark, pieces: 0, characters: 0 }
    totals.set(mark, {
      mark,
      pieces: total.pieces + 1,
      characters: total.characters + characters,
    })
  }
  return [...totals.values()]
}

export const countMarks = (pieces: readonly LeftOutPiece[]): LeftOutCounts =>
  Object.fromEntries(totalLeftOut(pieces).map(({ mark, pieces }) => [mark, pieces]))
