import { memoryIdOf } from '#shared/core/ids.ts'
import { memberWordsByIds } from '#shared/org/pipeline/member-words.mongo.ts'
import type { OrgPolicy } from '#shared/org/base/org-policy.postgres.ts'
import { findEarlierTurns } from '#shared/org/base/org-turns.postgres.ts'
import { truncateText, withholdByAntiRules } from '#shared/org/base/rule-matching.ts'
import type { OrgExtractJob, TurnMessage } from '#shared/domain/job-payloads.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import { groupIntoTurns } from '#shared/vault/ingest/turn-extraction.ts'

/** The messages before an exchange in its session. */
export type EarlierWords = {
  /** Oldest first. */
  messages: TurnMessage[]
  /** Tags of the shared memories in the prompts of that time. */
  inheritedTags: string[]
}

/** Exchanges, and of each the memories that may hold its first words. */
const exchangesMax = 3
const memoriesMax = 4
const messagesMax = 6
const messageMax = 600
/** Older messages belong to another conversation. */
const withinMs = 30 * 60_000

/**
 * Finds the last exchanges before these in the same session that were shared with the organization and are still
 * remembered. Words that an anti-rule matches are left out.
 *
 * @throws Refusal `unavailable` when a store is out of reach.
 */
export async function findEarlierWords(
  { postgres, mongo }: { postgres: Postgres; mongo: Mongo },
  policy: OrgPolicy,
  jobs: readonly OrgExtractJob[],
): Promise<EarlierWords> {
  const [first] = jobs
  const turns = await findEarlierTurns(postgres.query, {
    turn: first!.turn,
    besides: jobs.flatMap(({ turn, operation }) => [turn, operation ?? turn]),
    from: first!.saidAt - withinMs,
    upTo: first!.saidAt,
    limit: exchangesMax,
  })
  if (turns.length === 0) return { messages: [], inheritedTags: [] }
  const ids = turns.flatMap(({ id }) =>
    Array.from({ length: memoriesMax }, (_, index) => memoryIdOf(id, index)),
  )
  const words = await memberWordsByIds(mongo, first!, ids)
  const shown = withholdByAntiRules(policy, groupIntoTurns(words)).turns.flat()
  return {
    messages: shown
      .slice(-messagesMax)
      .map(message => ({ ...message, text: truncateText(message.text, messageMax) })),
    // Of all of them: an answer may go on with what an earlier one said.
    inheritedTags: [...new Set(turns.flatMap(({ inheritedTags }) => inheritedTags))],
  }
}
