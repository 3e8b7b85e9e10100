import type { KnownMark, KnownSpan, KnownText } from '#shared/domain/turn/known-mark.ts'
import { knownMarks } from '#shared/domain/turn/known-marks.ts'

/** What an element is: left out, or only its tags. */
export type KnownElement = { isAround: boolean; row: KnownMark; follows: string }

const elementsByName = Map.groupBy(
  knownMarks.flatMap(row => [
    ...(row.elements ?? []).map(follows => ({ isAround: false, row, follows })),
    ...(row.around ?? []).map(follows => ({ isAround: true, row, follows })),
  ]),
  ({ follows }) => /^[\w.:-]+/.exec(follows)![0],
)

/** A text, and who wrote it. */
export type MarkedText = {
  text: string
  isModel: boolean
  /** Whether the message, in this part or another, holds a text. */
  messageHolds(text: string): boolean
}

const isOf = ({ of, beside }: KnownMark, { isModel, messageHolds }: MarkedText): boolean =>
  isModel === (of === 'model') && (beside === undefined || messageHolds(beside))

/** The row of an element that begins at `start`; undefined where no known program writes it so. */
export const findKnownElement = (
  from: MarkedText,
  rawName: string,
  start: number,
): KnownElement | undefined =>
  elementsByName
    .get(rawName)
    ?.find(({ row, follows }) => isOf(row, from) && from.text.startsWith(follows, start + 1))

/** The form of a message of the user that a program wrote, or put around their words. */
export const findKnownText = (trimmed: string): KnownText | undefined =>
  knownTexts.find(
    ({ beginning, also }) =>
      trimmed.startsWith(beginning) &&
      (also === undefined || trimmed.slice(0, 128).split('\n', 1)[0]!.includes(also)),
  )

const knownTexts = knownMarks.flatMap(({ texts = [] }) => texts)

export const knownSpans: readonly KnownSpan[] = knownMarks.flatMap(({ spans = [] }) => spans)
