import { createLruCache } from '#shared/core/lru-cache.ts'
import { mintId } from '#shared/core/ids.ts'
import type { Seal } from '#shared/core/seal.ts'
import type { Log } from '#shared/core/log.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import { countPending, findNewestWithTagSets } from '#shared/org/memories/shared-lists.mongo.ts'
import { visibilityKey, visibilityOf, partitionTagSets } from '#shared/domain/visibility.ts'
import { toSharedVaultScope, type MemberScope } from '#shared/domain/member-scope.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import {
  insertRetrievals,
  trimRetrievals,
  type SharedRetrieval,
} from '#shared/org/trail/shared-retrievals.postgres.ts'
import { listTagSets } from '#shared/vault/base/tag-sets.postgres.ts'
import type { Retrieval, RetrievalTrail } from '#shared/vault/read/search/retrieval-trail.ts'

type PermittedCounts = Pick<SharedRetrieval, 'permitted' | 'dropped' | 'sample'>

type PendingRetrieval = { member: MemberScope; retrieval: Retrieval; at: number }

/** Beyond this the oldest entries are dropped: nothing depends on the trail. */
const pendingMax = 1_000
const sampleMax = 20
const cacheMax = 1_000
/** Entries of an organization after which its old ones are deleted. */
const trimEvery = 100

/**
 * Creates the admin's trail of retrievals. One batch is written at a time, with what arrived during the one before.
 * What an audience sees of a vault is computed once for each of its revisions.
 */
export function createRetrievalTrail(
  { seal, ...stores }: { postgres: Postgres; mongo: Pick<Mongo, 'memories'>; seal: Seal },
  log: Log,
): RetrievalTrail {
  const { query } = stores.postgres
  const cache = createLruCache<PermittedCounts>(cacheMax)
  const writtenPerOrg = createLruCache<number>(cacheMax)
  let pending: PendingRetrieval[] = []
  let writing: Promise<void> | null = null

  const cachedCounts = async (member: MemberScope): Promise<PermittedCounts> => {
    const { orgVault, orgEpoch, orgRevision } = member
    const key = [orgVault, orgEpoch, orgRevision, visibilityKey(visibilityOf(member))].join('\n')
    const counts = cache.get(key) ?? (await countPermitted(stores, member))
    cache.set(key, counts)
    return counts
  }

  const trim = async (org: string, more: number): Promise<void> => {
    const count = (writtenPerOrg.get(org) ?? 0) + more
    writtenPerOrg.set(org, count % trimEvery)
    if (count >= trimEvery) await trimRetrievals(query, org)
  }

  const write = async (): Promise<void> => {
    while (pending.length > 0) {
      const batch = pending
      pending = []
      try {
        const rows: SharedRetrieval[] = []
        for (const one of batch) rows.push(toRow(seal, one, await cachedCounts(one.member)))
        await insertRetrievals(query, rows)
        const orgs = Map.groupBy(rows, ({ org }) => org)
        for (const [org, own] of orgs) await trim(org, own.length)
      } catch (error) {
        log.warn({ err: error, lost: batch.length }, 'retrievals.lost')
      }
    }
    writing = null
  }

  return {
    record(member, retrieval) {
      pending.push({ member, retrieval, at: Date.now() })
      if (pending.length > pendingMax) pending.shift()
      // After this turn: the answer goes to its socket first.
      writing ??= new Promise(setImmediate).then(write)
    },
    flush: async () => void (await writing),
  }
}

/** Counts the shared memories that a member may see and those that they may not, with the newest of these. */
export async function countPermitted(
  { postgres, mongo }: { postgres: Postgres; mongo: Pick<Mongo, 'memories'> },
  member: MemberScope,
): Promise<PermittedCounts> {
  const scope = toSharedVaultScope(member)
  const sets = partitionTagSets(visibilityOf(member), await listTagSets(postgres.query, scope))
  const hidden = sets.dropped.filter(({ memories }) => memories > 0)
  const counted = (some: typeof hidden) => some.reduce((sum, { memories }) => sum + memories, 0)
  // The counts of tag sets hold what waits for a person, which no member sees whatever their roles.
  const permittedSets = sets.permitted.map(({ tagSet }) => tagSet)
  const pending = await countPending(mongo, scope, hidden.length > 0 ? permittedSets : undefined)
  const sample =
    hidden.length === 0
      ? []
      : await findNewestWithTagSets(mongo, scope, {
          tagSets: hidden.map(({ tagSet }) => tagSet),
          max: sampleMax,
        })
  // Applied in MongoDB before it is counted in Postgres, a write may wait already and not be counted.
  const permitted = Math.max(0, counted(sets.permitted) - pending)
  return { permitted, dropped: counted(hidden), sample }
}

/** Characters of a question that are kept until the lookup. */
const questionMax = 8_000

/** The question of a member to whom nothing is hidden is not stored. */
function toRow(
  seal: Seal,
  { member, retrieval: { request, returned, question }, at }: PendingRetrieval,
  seen: PermittedCounts,
): SharedRetrieval {
  const id = mintId()
  const open = question && { ...question, text: question.text.slice(0, questionMax) }
  return {
    id,
    org: member.org,
    author: member.teamMemberId,
    allowedTags: member.allowedTags,
    wildcard: member.wildcard,
    ...seen,
    request,
    returned: [...returned],
    question:
      open && seen.dropped > 0 ? seal.seal(JSON.stringify(open), questionContext(id)) : null,
    denied: seen.dropped === 0 ? [] : null,
    createdAt: at,
  }
}

const questionContext = (id: string): string => `shared_retrievals:${id}`

export const openQuestion = (
  seal: Seal,
  { id, question }: { id: string; question: string },
): NonNullable<Retrieval['question']> =>
  JSON.parse(seal.open(question, questionContext(id))) as NonNullable<Retrieval['question']>
