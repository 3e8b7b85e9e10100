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

/** Relevance of a row that is just worth telling: it has the score 0.5. */
const middleRelevance = 0.3
/** 1 says that the text is the query, whose relevance is infinite: any other row has less. */
const scoreMax = 0.9999

/**
 * The score of a row, 0 to 1, by the relevance that it was ranked by: 0.4 to 0.5 broad, 0.5 to 0.65 balanced, 0.65
 * and up strict. Monotone, so rows in order of relevance are in order of their scores.
 */
export const scoreOf = (relevance: number): number =>
  relevance === Infinity ? 1 : Math.min(scoreMax, 1 - 2 ** (-relevance / middleRelevance))
