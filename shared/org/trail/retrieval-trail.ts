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

type TrailStores = { postgres: Postgres; mongo: Pick<Mongo, 'memories'> }

/**
 * Keeps the admin's trail of retrievals. One batch is written at a time, with what arrived during the one before.
 * What an audience sees of a vault is computed once for each of its revisions.
 */
export class StoredRetrievalTrail implements RetrievalTrail {
  readonly #stores: TrailStores & { seal: Seal }
  readonly #log: Log
  readonly #counts = createLruCache<PermittedCounts>(cacheMax)
  readonly #writtenPerOrg = createLruCache<number>(cacheMax)
  #pending: PendingRetrieval[] = []
  #writing: Promise<void> | undefined

  constructor(stores: TrailStores & { seal: Seal }, log: Log) {
    this.#stores = stores
    this.#log = log
  }

  record(member: MemberScope, retrieval: Retrieval): void {
    this.#pending.push({ member, retrieval, at: Date.now() })
    if (this.#pending.length > pendingMax) this.#pending.shift()
    // After this turn: the answer goes to its socket first.
    this.#writing ??= new Promise(setImmediate).then(() => this.#write())
  }

  async flush(): Promise<void> {
    await this.#writing
  }

  async #write(): Promise<void> {
    const { postgres, seal } = this.#stores
    while (this.#pending.length > 0) {
      const batch = this.#pending
      this.#pending = []
      try {
        const rows: SharedRetrieval[] = []
        for (const one of batch) rows.push(toRow(seal, one, await this.#countsFor(one.member)))
        await insertRetrievals(postgres.query, rows)
        const orgs = Map.groupBy(rows, ({ org }) => org)
        for (const [org, own] of orgs) await this.#trim(org, own.length)
      } catch (error) {
        this.#log.warn({ err: error, lost: batch.length }, 'retrievals.lost')
      }
    }
    this.#writing = undefined
  }

  async #countsFor(member: MemberScope): Promise<PermittedCounts> {
    const { orgVault, orgEpoch, orgRevision } = member
    const key = [orgVault, orgEpoch, orgRevision, visibilityKey(visibilityOf(member))].join('\n')
    const counts = this.#counts.get(key) ?? (await countPermitted(this.#stores, member))
    this.#counts.set(key, counts)
    return counts
  }

  async #trim(org: string, more: number): Promise<void> {
    const count = (this.#writtenPerOrg.get(org) ?? 0) + more
    this.#writtenPerOrg.set(org, count % trimEvery)
    if (count >= trimEvery) await trimRetrievals(this.#stores.postgres.query, org)
  }
}

/** Counts the shared memories that a member may see and those that they may not, with the newest of these. */
export async function countPermitted(
  { postgres, mongo }: TrailStores,
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
