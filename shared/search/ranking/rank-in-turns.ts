import { runAtOnce, runInSlices } from '#shared/core/event-loop.ts'
import type { VaultIndex } from '#shared/search/index/vault-index.ts'
import {
  rankingSteps,
  type EmbeddedQuestion,
  type SearchHit,
  type SearchOptions,
} from '#shared/search/ranking/rank.ts'

/** A vault that changes all the time is ranked in one turn after so many attempts. */
const attemptsMax = 2

/**
 * As `rankQuestions`, in several turns of the event loop where it takes long. An index may change between
 * two of them: then the ranking begins again, so that it never has a row that was removed, or rows of
 * different states.
 *
 * @param openIndexes returns the indexes to rank; called again after a change
 */
export async function rankInTurns(
  openIndexes: () => Promise<readonly VaultIndex[]>,
  questions: readonly EmbeddedQuestion[],
  search: SearchOptions,
): Promise<SearchHit[]> {
  for (let attempt = 1; attempt <= attemptsMax; attempt++) {
    const hits = await runInSlices(rankingSteps(await openIndexes(), questions, search))
    if (hits) return hits
  }
  return runAtOnce(rankingSteps(await openIndexes(), questions, search)) ?? []
}
