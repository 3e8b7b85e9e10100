import type { Config } from '#shared/core/config.ts'
import { toSharedVaultScope, type MemberScope } from '#shared/domain/member-scope.ts'
import { isPermitted, partitionTagSets, visibilityOf } from '#shared/domain/visibility.ts'
import { rankByQuery } from '#shared/org/memories/list-shared-memories.ts'
import { sharedPage, type SharedFilter } from '#shared/org/memories/shared-lists.mongo.ts'
import { sharedByIds, type SharedMemory } from '#shared/org/memories/shared-memories.mongo.ts'
import { roleRows } from '#shared/org/base/roles.postgres.ts'
import { toSensitivityRules } from '#shared/org/base/sensitivity-rules.ts'
import { listTags } from '#shared/org/base/tags.postgres.ts'
import { findKeptBack } from '#shared/org/trail/denied-memories.ts'
import { countPermitted } from '#shared/org/trail/retrieval-trail.ts'
import { listTagSets } from '#shared/vault/base/tag-sets.postgres.ts'
import { recallReranked } from '#shared/vault/read/search/recall.ts'

type SearchBackend = Parameters<typeof rankByQuery>[0] & { config: Pick<Config, 'reranker'> }

export type SharedQuestion = {
  /** Undefined: the newest memories. */
  text: string | undefined
  /** How many of what is seen, and of what is kept back. */
  limit: number
}

/** What a viewer is given of the shared memory, and what is kept back, best or newest first. */
export type SharedView = {
  seen: { memory: SharedMemory; score?: number }[]
  keptBack: {
    memory: SharedMemory
    /** Tags of the memory that the viewer's roles do not allow; none where it only waits for a person. */
    missingTags: string[]
    /** The roles that would allow these, each beside those that the viewer has. */
    openedBy: { role_id: string; name: string }[]
  }[]
  /** How many of all shared memories, whatever is asked. */
  permitted: number
  dropped: number
}

/**
 * Asks the shared memory for an admin as a member's search does, with the same ranking and the same wall, and without
 * a private vault. It is no retrieval of a member, and no key is billed. A member's own search ranks their
 * private memories among these, so that it may have fewer of them.
 *
 * @throws Refusal as `recall`.
 */
export async function searchAs(
  backend: SearchBackend,
  viewer: MemberScope,
  question: SharedQuestion,
): Promise<SharedView> {
  const { text } = question
  const { query } = backend.postgres
  const [{ seen, hidden, pending }, { permitted, dropped }, roles, tags] = await Promise.all([
    text === undefined
      ? newestFirst(backend, viewer, question)
      : bestFirst(backend, viewer, { ...question, text }),
    countPermitted(backend, viewer),
    roleRows.list(query, viewer.org),
    listTags(query, viewer.org),
  ])
  const visibility = visibilityOf(viewer)
  const allowed = toSensitivityRules(viewer.org, roles, tags).roles
  const opens = (labels: readonly string[], missingTags: readonly string[]): boolean =>
    missingTags.length > 0 &&
    isPermitted(
      visibilityOf({ wildcard: labels.includes('*'), allowedTags: [...labels] }),
      missingTags,
    )
  const keptBack = [...hidden, ...pending].map(memory => {
    const missingTags = memory.tags.filter(tag => !isPermitted(visibility, [tag]))
    const openedBy = roles.filter((_, index) => opens(allowed[index]!, missingTags))
    return {
      memory,
      missingTags,
      openedBy: openedBy.map(({ id, name }) => ({ role_id: id, name })),
    }
  })
  return { seen, keptBack, permitted, dropped }
}

type Found = { seen: SharedView['seen']; hidden: SharedMemory[]; pending: SharedMemory[] }

async function bestFirst(
  backend: SearchBackend,
  viewer: MemberScope,
  { text, limit }: SharedQuestion & { text: string },
): Promise<Found> {
  const scope = toSharedVaultScope(viewer)
  const question = { text, limit, tiers: undefined, importance: undefined }
  const [recalled, kept, pending] = await Promise.all([
    recallReranked(
      backend,
      { scope, memberScope: viewer },
      { ...question, sessions: [], embeddings: undefined, relevantOnly: false },
    ),
    findKeptBack(backend, viewer, question),
    rankByQuery(
      backend,
      { ...scope, space: viewer.orgSpace },
      { ...unfiltered, q: text, pending: true, relevantOnly: true },
      limit,
    ),
  ])
  const ids = [...recalled.map(({ memory }) => memory), ...kept].map(({ id }) => id)
  const rows = new Map((await sharedByIds(backend.mongo, scope, ids)).map(row => [row.id, row]))
  return {
    seen: recalled.flatMap(({ memory: { id }, score }) => {
      const memory = rows.get(id)
      return memory ? [{ memory, score }] : []
    }),
    hidden: kept.flatMap(({ id }) => rows.get(id) ?? []),
    pending,
  }
}

async function newestFirst(
  { postgres, mongo }: SearchBackend,
  viewer: MemberScope,
  { limit }: SharedQuestion,
): Promise<Found> {
  const scope = toSharedVaultScope(viewer)
  const sets = partitionTagSets(visibilityOf(viewer), await listTagSets(postgres.query, scope))
  const page = (filter: Partial<SharedFilter>): Promise<SharedMemory[]> =>
    sharedPage(mongo, scope, { ...unfiltered, ...filter, after: undefined, count: limit })
  const [seen, hidden, pending] = await Promise.all([
    page({ tagSets: sets.permitted.map(({ tagSet }) => tagSet) }),
    page({ tagSets: sets.dropped.map(({ tagSet }) => tagSet) }),
    page({ pending: true }),
  ])
  return { seen: seen.map(memory => ({ memory })), hidden, pending }
}

const unfiltered: SharedFilter = {
  tag: undefined,
  author: undefined,
  reviewed: undefined,
  condition: undefined,
}
