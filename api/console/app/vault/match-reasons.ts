import { chip } from '#api/console/app/parts/chips.ts'
import type { View } from '#api/console/app/html.ts'
import type { MatchReason } from '#api/contract/generated/types.ts'

/** What a memory was found by, as a label and a sentence. */
const matchReasons: Record<MatchReason, readonly [label: string, sentence: string]> = {
  words: ['same words', 'It has words of the question'],
  similarity: ['similar meaning', 'It means something like the question'],
  name: ['name', 'It is of a person that the question names'],
  time: ['time', 'It is of the time that the question names'],
  reply: ['reply', 'It stands beside another memory that was found'],
}

export const reasonChips = (reasons: readonly MatchReason[]): View[] =>
  reasons.map(reason => chip(matchReasons[reason][0], 'tag', matchReasons[reason][1]))
