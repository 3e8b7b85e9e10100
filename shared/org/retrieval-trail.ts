import { mintId } from '#shared/core/ids.ts'
import type { Log } from '#shared/core/log.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import { newestBearing } from '#shared/org/shared-lists.mongo.ts'
import { audienceKey, audienceOf, permittedSets } from '#shared/domain/visibility.ts'
import { sharedVaultOf, type MemberScope } from '#shared/domain/member-scope.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import {
  insertRetrievals,
  trimRetrievals,
  type Retrieval,
} from '#shared/org/shared-retrievals.postgres.ts'
import { tagSetsOf } from '#shared/vault/base/tag-sets.postgres.ts'
import type { RetrievalTrail } from '#shared/vault/read/retrieval-trail.ts'

type Seen = Pick<Retrieval, 'permitted' | 'dropped' | 'sample'>

/** The trail helps to understand, nothing depends on it: beyond this the oldest are given up. */
const waitingMax = 1_000
const sampleMax = 20
const knownMax = 1_000
/** After so many of an organization the old ones are looked for. */
const trimEvery = 100

/**
 * The admin's trail of what was retrieved. One batch is under way at a time and carries what came
 * meanwhile; what an audience sees of a vault is worked out once for each of its revisions.
 */
export function createRetrievalTrail(
  stores: { postgres: Postgres; mongo: Pick<Mongo, 'memories'> },
  log: Log,
): RetrievalTrail {
  const { query } = stores.postgres
  const known = new Map<string, Seen>()
  const written = new Map<string, number>()
  let waiting: { member: MemberScope; at: number }[] = []
  let writing: Promise<void> | null = null

  const seenBy = async (member: MemberScope): Promise<Seen> => {
    const { orgVault, orgEpoch, orgRevision } = member
    const key = [orgVault, orgEpoch, orgRevision, audienceKey(audienceOf(member))].join('\n')
    const seen = known.get(key) ?? (await lookAt(stores, member))
    known.delete(key)
    known.set(key, seen)
    if (known.size > knownMax) known.delete(known.keys().next().value!)
    return seen
  }

  const trim = async (org: string, more: number): Promise<void> => {
    const count = (written.get(org) ?? 0) + more
    written.set(org, count % trimEvery)
    if (count >= trimEvery) await trimRetrievals(query, org)
    if (written.size > knownMax) written.clear()
  }

  const write = async (): Promise<void> => {
    while (waiting.length > 0) {
      const batch = waiting
      waiting = []
      try {
        const rows: Retrieval[] = []
        for (const { member, at } of batch) rows.push(rowOf(member, await seenBy(member), at))
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
    record(member) {
      waiting.push({ member, at: Date.now() })
      if (waiting.length > waitingMax) waiting.shift()
      // After this turn: the answer goes to its socket first.
      writing ??= new Promise(setImmediate).then(write)
    },
    flush: async () => void (await writing),
  }
}

async function lookAt(
  { postgres, mongo }: { postgres: Postgres; mongo: Pick<Mongo, 'memories'> },
  member: MemberScope,
): Promise<Seen> {
  const scope = sharedVaultOf(member)
  const sets = permittedSets(audienceOf(member), await tagSetsOf(postgres.query, scope))
  const hidden = sets.dropped.filter(({ memories }) => memories > 0)
  const counted = (some: typeof hidden) => some.reduce((sum, { memories }) => sum + memories, 0)
  const sample =
    hidden.length === 0
      ? []
      : await newestBearing(mongo, scope, {
          tagSets: hidden.map(({ tagSet }) => tagSet),
          max: sampleMax,
        })
  return { permitted: counted(sets.permitted), dropped: counted(hidden), sample }
}

const rowOf = (member: MemberScope, seen: Seen, at: number): Retrieval => ({
  id: mintId(),
  org: member.org,
  author: member.teamMemberId,
  allowedTags: member.allowedTags,
  wildcard: member.wildcard,
  ...seen,
  createdAt: at,
})
