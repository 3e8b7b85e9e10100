import type { Config } from '#shared/core/config.ts'
import {
  countOrg,
  listContributors,
  type Contributor,
  type OrgCounts,
} from '#shared/org/base/contributors.postgres.ts'
import { listOrgUsage, type OrgUsageRow } from '#shared/org/base/org-usage.postgres.ts'
import type { OrgRow } from '#shared/org/base/orgs.postgres.ts'
import { pipelineNotices, readPipeline, type Pipeline } from '#shared/org/admin/pipeline-status.ts'
import {
  countPendingTagSetDays,
  countReviewQueue,
  countTagSetDays,
  type TagSetDay,
} from '#shared/org/memories/shared-counts.mongo.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import { listTagSets } from '#shared/vault/base/tag-sets.postgres.ts'

/** How many memories there are: in all, without a tag, with each of some tags, and with other tags alone. */
export type TagCounts = {
  memories: number
  untagged: number
  byTag: Map<string, number>
  other: number
}

/** What an organization knows, what waits, and what it costs. */
export type OrgOverview = {
  /** All shared memories that members may see. */
  total: TagCounts
  /** Those said from the asked day on, by the UTC day they were said, oldest first. */
  days: (TagCounts & { day: string })[]
  review: { waiting: number; oldestAt: Date | null }
  notice: string | null
  pipeline: Pipeline
  /** Model calls of the pipeline since midnight UTC. */
  usageToday: OrgUsageRow[]
  counts: OrgCounts
  contributors: Contributor[]
}

const contributorsMax = 10

/**
 * Reads the overview of an organization for its admin. A memory with several tags counts for each of them. Nothing of
 * a private vault is read.
 *
 * @param span.from epoch milliseconds, the beginning of a UTC day
 * @param span.tagsMax how many tags are counted by name: those that most memories have
 * @throws Refusal `unavailable` when the memory store is out of reach.
 */
export async function readOrgOverview(
  backend: { postgres: Postgres; mongo: Mongo; config: Pick<Config, 'providers'> },
  org: OrgRow,
  { from, now, tagsMax }: { from: number; now: number; tagsMax: number },
): Promise<OrgOverview> {
  const { query } = backend.postgres
  const { id, account, vault, epoch } = org
  const scope = { vault, epoch }
  const today = new Date(now)
  const [sets, days, pending, review, notices, pipeline, usageToday, counts, contributors] =
    await Promise.all([
      listTagSets(query, scope),
      countTagSetDays(backend.mongo, scope, from),
      countPendingTagSetDays(backend.mongo, scope),
      countReviewQueue(backend.mongo, scope),
      pipelineNotices(backend, account, [org]),
      readPipeline(query, id),
      listOrgUsage(query, id, { from: today, to: today }),
      countOrg(query, id),
      listContributors(query, id, { from: new Date(from), limit: contributorsMax }),
    ])
  // Tag sets and days have the memories that members do not see yet, too.
  const hidden = pending.map(row => ({ ...row, memories: -row.memories }))
  const all = [...sets, ...hidden]
  const firstDay = new Date(from).toISOString().slice(0, 10)
  const visible = [...days, ...hidden.filter(({ day }) => day >= firstDay)]
  const named = mostUsedTags(all, tagsMax)
  return {
    total: countTags(all, named),
    days: [...Map.groupBy(visible, ({ day }) => day)]
      .map(([day, rows]) => ({ day, ...countTags(rows, named) }))
      .filter(({ memories }) => memories > 0)
      .toSorted((one, other) => (one.day < other.day ? -1 : 1)),
    review,
    notice: notices.get(id) ?? null,
    pipeline,
    usageToday,
    counts,
    contributors,
  }
}

type TagSetCount = Pick<TagSetDay, 'tagSet' | 'memories'>

const tagsOf = ({ tagSet }: TagSetCount): string[] => JSON.parse(tagSet) as string[]

/** The tags that most memories have, most first; of equals in the order of the alphabet. */
function mostUsedTags(rows: readonly TagSetCount[], max: number): string[] {
  const counts = new Map<string, number>()
  for (const row of rows)
    for (const tag of tagsOf(row)) counts.set(tag, (counts.get(tag) ?? 0) + row.memories)
  return [...counts]
    .filter(([, memories]) => memories > 0)
    .toSorted(([one, few], [other, many]) => many - few || (one < other ? -1 : 1))
    .slice(0, max)
    .map(([tag]) => tag)
}

function countTags(rows: readonly TagSetCount[], named: readonly string[]): TagCounts {
  const counts = { memories: 0, untagged: 0, other: 0 }
  const byTag = new Map(named.map(tag => [tag, 0]))
  for (const row of rows) {
    const tags = tagsOf(row)
    const found = tags.filter(tag => byTag.has(tag))
    counts.memories += row.memories
    if (tags.length === 0) counts.untagged += row.memories
    else if (found.length === 0) counts.other += row.memories
    for (const tag of found) byTag.set(tag, byTag.get(tag)! + row.memories)
  }
  return { ...counts, byTag }
}
