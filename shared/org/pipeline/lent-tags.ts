import type { EarlierWords } from '#shared/org/pipeline/earlier-words.ts'
import type { TurnMessage } from '#shared/domain/job-payloads.ts'

/** Shorter words without a digit say little about whose they are. */
const wordLengthMin = 4

/**
 * The tags that a fact has at least: those of the shared memories that the model was told, unless the fact
 * is in the member's own words. A word that only the model said is the model's.
 */
export function inheritedTagsOf(
  fact: string,
  {
    turn,
    turns,
  }: { turn: { inheritedTags: readonly string[] }; turns: readonly (readonly TurnMessage[])[] },
  earlier: EarlierWords,
): string[] {
  const lent = [...new Set([...turn.inheritedTags, ...earlier.inheritedTags])]
  if (lent.length === 0) return []
  const messages = [...earlier.messages, ...turns.flat()]
  const said = wordsOf(messages.filter(({ role }) => role === 'user'))
  const answered = wordsOf(messages.filter(({ role }) => role !== 'user'))
  const words = [...wordsOf([{ text: fact }])]
  const own = words.filter(word => said.has(word))
  const isOwn =
    own.length * 2 >= words.length && words.every(word => said.has(word) || !answered.has(word))
  return isOwn ? [] : lent.toSorted()
}

const wordsOf = (messages: readonly { text: string }[]): Set<string> =>
  new Set(
    messages
      .flatMap(
        ({ text }) =>
          text
            .normalize('NFKC')
            .toLowerCase()
            .match(/[\p{L}\p{M}\p{N}]+/gu) ?? [],
      )
      .filter(word => word.length >= wordLengthMin || /\p{N}|\P{ASCII}/u.test(word)),
  )
