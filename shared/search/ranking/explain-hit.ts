import type { Signals } from '#shared/search/ranking/fuse-signals.ts'

/** What a memory was found by. */
export type MatchReason = 'words' | 'similarity' | 'name' | 'time' | 'reply'

/** Weaker signals explain nothing. */
const signalMin = 0.1

/** The signals that a row was ranked by, the strongest kinds first; never empty. */
export function matchReasons({
  words,
  similarity,
  speakerMatch,
  time,
  context,
}: Signals): MatchReason[] {
  const reasons: MatchReason[] = []
  if (words >= signalMin) reasons.push('words')
  if (similarity >= signalMin) reasons.push('similarity')
  if (speakerMatch >= 1) reasons.push('name')
  if (time > 0) reasons.push('time')
  if (context > 0 && context > words + similarity) reasons.push('reply')
  if (reasons.length > 0) return reasons
  if (context > 0) return ['reply']
  return [words > similarity ? 'words' : 'similarity']
}

/** Relevance of a row that is just relevant by itself; it is presented as 0.5. */
const middleRelevance = 0.3

/** The value that a row was ranked by, from above 0 to 1: 0.5 is where a row becomes worth telling. */
export const toRelevance = (fused: number): number => 1 - 2 ** (-fused / middleRelevance)

/** Words, context and times prove less than a similarity. */
const wordScoreShare = 0.5

/** The similarity; of a row that was found otherwise, a share of what it was found by. */
export function hitScore({ similarity, words, context, time }: Signals): number {
  if (similarity > 0) return similarity
  return wordScoreShare * Math.min(1, words + context + 0.2 * time)
}
