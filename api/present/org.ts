import type {
  ListedMemberKey,
  ListedUser,
  MemberKeyState,
  NewMemberKey,
  Organization,
  OrgInstructions,
  OrgRole,
  OrgTag,
  OrgUser,
  OrgUsageSums,
  Pipeline as PresentedPipeline,
} from '#api/contract/generated/types.ts'
import { maskMemberKey } from '#shared/access/key.ts'
import type { RevealedMemberKey } from '#shared/org/admin/member-keys.ts'
import type { InstructionsRow } from '#shared/org/base/org-policy.postgres.ts'
import type { MemberKeyRow } from '#shared/access/member-keys.postgres.ts'
import type { OrgRow } from '#shared/org/base/orgs.postgres.ts'
import type { DirectorySettings } from '#shared/org/base/groups.postgres.ts'
import type { RoleRow } from '#shared/org/base/roles.postgres.ts'
import type { TagRow } from '#shared/org/base/tags.postgres.ts'
import type { UserRow } from '#shared/org/base/users.postgres.ts'
import type { OrgUsageRow, TokenCounts } from '#shared/org/base/org-usage.postgres.ts'
import type { OrgOverview, TagCounts } from '#shared/org/admin/overview.ts'
import type { Pipeline } from '#shared/org/admin/pipeline-status.ts'
import type { Prices } from '#shared/models/prices.ts'
import { presentCost } from '#api/present/usage.ts'

export const presentOrg = (org: OrgRow): Organization => ({
  org_id: org.id,
  name: org.name,
  processor_provider: org.processorProvider,
  extract_model: org.extractModel,
  classify_model: org.classifyModel,
  owner_email: org.ownerEmail,
  created_at: org.createdAt.getTime(),
  updated_at: org.updatedAt.getTime(),
})

export const presentNewMemberKey = (row: RevealedMemberKey): NewMemberKey => ({
  id: row.id,
  key_id: row.key,
  memory_key: row.key,
  org_id: row.org,
  team_member_id: row.teamMemberId,
  created_at: row.createdAt.getTime(),
})

export const presentListedMemberKey = (row: MemberKeyRow): ListedMemberKey => ({
  id: row.id,
  key_id: row.id,
  org_id: row.org,
  team_member_id: row.teamMemberId,
  created_at: row.createdAt.getTime(),
  ...presentKeyState(row),
})

export const presentKeyState = (row: MemberKeyRow): MemberKeyState => ({
  masked_key: maskMemberKey(row.masked),
  active: row.active,
  revoked_at: row.revokedAt?.getTime() ?? null,
  last_used_at: row.lastUsedAt?.getTime() ?? null,
  shares: row.shares,
})

export const presentRole = (role: RoleRow): OrgRole => ({
  role_id: role.id,
  org_id: role.org,
  name: role.name,
  allowed_tags: role.allowedTags,
  created_at: role.createdAt.getTime(),
})

export const presentDirectorySettings = ({ required, hours, grants }: DirectorySettings) => ({
  sign_in_required: required,
  sign_in_hours: hours,
  grants: grants.map(({ group, roleIds, reviews }) => ({ group, role_ids: roleIds, reviews })),
})

export const presentUser = (user: UserRow): OrgUser => ({
  user_id: user.id,
  org_id: user.org,
  team_member_id: user.teamMemberId,
  email: user.email,
  first_name: user.firstName,
  last_name: user.lastName,
  role_ids: user.roles.map(role => role.role_id),
  active: user.active,
  created_at: user.createdAt.getTime(),
})

export const presentListedUser = (user: UserRow): ListedUser => ({
  ...presentUser(user),
  roles: user.roles,
  has_memory_key: user.hasKey,
  shares: user.shares,
})

export const presentTag = (tag: TagRow): OrgTag => ({
  tag_id: tag.id,
  org_id: tag.org,
  label: tag.label,
  question: tag.question,
  examples: tag.examples,
  negatives: tag.negatives,
  created_at: tag.createdAt.getTime(),
})

export const presentInstructions = (instructions: InstructionsRow): OrgInstructions => ({
  org_id: instructions.org,
  default_on: instructions.defaultOn,
  custom: instructions.custom,
  anti_rules: instructions.antiRules,
  exec_rules: instructions.execRules,
  updated_at: instructions.updatedAt.getTime(),
})

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

const presentTagCounts = ({ memories, untagged, byTag, other }: TagCounts) => ({
  memories: Math.max(0, memories),
  untagged: Math.max(0, untagged),
  by_tag: Object.fromEntries([...byTag].map(([tag, count]) => [tag, Math.max(0, count)])),
  other: Math.max(0, other),
})

/** @param daysMax how many of the newest days are answered at most */
export const presentOverview = (prices: Prices, overview: OrgOverview, daysMax: number) => ({
  total: presentTagCounts(overview.total),
  by_day: overview.days
    .slice(-daysMax)
    .map(({ day, ...counts }) => ({ day, ...presentTagCounts(counts) })),
  review: {
    waiting: overview.review.waiting,
    oldest_at: overview.review.oldestAt?.getTime() ?? null,
  },
  notice: overview.notice,
  pipeline: presentPipeline(overview.pipeline),
  usage_today: presentUsageSums(prices, overview.usageToday),
  members: {
    count: overview.counts.members,
    with_key: overview.counts.withKey,
    last_used_at: overview.counts.lastUsedAt?.getTime() ?? null,
    contributors: overview.contributors.map(({ teamMemberId, statements, lastSaidAt }) => ({
      team_member_id: teamMemberId,
      statements,
      last_said_at: lastSaidAt.getTime(),
    })),
  },
  defined_tags: overview.counts.tags,
})

/** Sums of calls and tokens, in all and by pass, member, model and day, and what they cost. */
export function presentOrgUsage(prices: Prices, rows: readonly OrgUsageRow[]) {
  const groupSums = (nameOf: (row: OrgUsageRow) => string): Record<string, OrgUsageSums> =>
    Object.fromEntries(
      [...Map.groupBy(rows, nameOf)].map(([name, group]) => [
        name,
        presentUsageSums(prices, group),
      ]),
    )
  return {
    total: presentUsageSums(prices, rows),
    by_pass: groupSums(({ pass }) => pass),
    by_member: groupSums(({ member }) => member),
    by_model: groupSums(({ model }) => model),
    by_day: groupSums(({ day }) => day),
  }
}

/** The sums of some calls of models, and what they cost. */
export function presentUsageSums(
  prices: Prices,
  rows: readonly Pick<OrgUsageRow, 'model' | 'calls' | keyof TokenCounts>[],
): OrgUsageSums {
  const models = rows.map(({ model, inputTokens: input, cachedTokens: cached, outputTokens }) => ({
    model,
    input,
    cached,
    output: outputTokens,
  }))
  return {
    calls: rows.reduce((sum, { calls }) => sum + calls, 0),
    input_tokens: models.reduce((sum, { input }) => sum + input, 0),
    cached_input_tokens: models.reduce((sum, { cached }) => sum + cached, 0),
    output_tokens: models.reduce((sum, { output }) => sum + output, 0),
    ...presentCost(prices, models),
  }
}
