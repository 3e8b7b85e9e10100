import type { OrgUsageSums, Pipeline as PresentedPipeline } from '#api/contract/generated/types.ts'
import type { OrgUsageRow } from '#shared/org/base/org-usage.postgres.ts'
import type { Pipeline } from '#shared/org/admin/pipeline-status.ts'

export const presentPipeline = (pipeline: Pipeline): PresentedPipeline => ({
  state: pipeline.state,
  since: pipeline.state === 'faulty' ? (pipeline.faultSince?.getTime() ?? null) : null,
  last_error: pipeline.fault,
  waiting: pipeline.waiting,
  given_up: pipeline.givenUp,
  paused: pipeline.paused,
  daily_token_budget: pipeline.dailyTokenBudget,
  spent_today: pipeline.spentToday,
})

/** Sums of calls and tokens, in all and by pass, member, model and day. */
export const presentOrgUsage = (rows: readonly OrgUsageRow[]) => ({
  total: sumOf(rows),
  by_pass: groupSums(rows, ({ pass }) => pass),
  by_member: groupSums(rows, ({ member }) => member),
  by_model: groupSums(rows, ({ model }) => model),
  by_day: groupSums(rows, ({ day }) => day),
})

const groupSums = (
  rows: readonly OrgUsageRow[],
  nameOf: (row: OrgUsageRow) => string,
): Record<string, OrgUsageSums> =>
  Object.fromEntries([...Map.groupBy(rows, nameOf)].map(([name, group]) => [name, sumOf(group)]))

const sumOf = (rows: readonly OrgUsageRow[]): OrgUsageSums => ({
  calls: rows.reduce((sum, { calls }) => sum + calls, 0),
  input_tokens: rows.reduce((sum, { inputTokens }) => sum + inputTokens, 0),
  cached_input_tokens: rows.reduce((sum, { cachedTokens }) => sum + cachedTokens, 0),
  output_tokens: rows.reduce((sum, { outputTokens }) => sum + outputTokens, 0),
})
