import type { Log } from '#shared/core/log.ts'
import type { Seal } from '#shared/core/seal.ts'
import type { MemberScope } from '#shared/domain/member-scope.ts'
import { isPermitted, visibilityOf } from '#shared/domain/visibility.ts'
import {
  listOpenQuestions,
  saveDenied,
  type SharedRetrieval,
  type OpenQuestion,
} from '#shared/org/trail/shared-retrievals.postgres.ts'
import { openQuestion } from '#shared/org/trail/retrieval-trail.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import { recall } from '#shared/vault/read/search/recall.ts'

type DeniedBackend = Parameters<typeof recall>[0] & { postgres: Postgres; seal: Seal; log: Log }

/** Questions of one run, and rows of each. */
const questionsMax = 100
const rowsMax = 50

/**
 * Looks up what members would have been given without the wall, for the admin's trail, and deletes the questions. A
 * worker does this a minute later: in the process that answers members, the time of the work would reveal hidden
 * memories.
 *
 * @returns how many were looked up.
 */
export async function findDeniedMemories(backend: DeniedBackend): Promise<number> {
  const { query } = backend.postgres
  const open = await listOpenQuestions(query, questionsMax)
  let found = 0
  for (const one of open) {
    try {
      await saveDenied(query, one.id, await deniedTo(backend, one))
      found++
    } catch (error) {
      backend.log.warn({ err: error, org: one.org }, 'retrieval.not-examined')
    }
  }
  return found
}

async function deniedTo(
  backend: DeniedBackend,
  open: OpenQuestion,
): Promise<SharedRetrieval['denied']> {
  const { vault, epoch, revision } = open
  const { limit = rowsMax, ...question } = openQuestion(backend.seal, open)
  const rows = await recall(
    backend,
    { scope: { vault, epoch, revision }, memberScope: toUnrestrictedScope(open) },
    {
      tiers: undefined,
      importance: undefined,
      ...question,
      limit: Math.min(limit, rowsMax),
      sessions: [],
      embeddings: undefined,
      relevantOnly: true,
    },
  )
  const visibility = visibilityOf({ wildcard: open.wildcard, allowedTags: [...open.allowedTags] })
  return rows
    .map(({ memory: { id, tags = [] } }) => ({ id, tags: [...tags] }))
    .filter(({ tags }) => !isPermitted(visibility, tags))
}

/** A scope of no member that sees all of the shared memory. */
const toUnrestrictedScope = ({
  org,
  vault,
  epoch,
  revision,
  space,
}: OpenQuestion): MemberScope => ({
  org,
  memberId: org,
  teamMemberId: '',
  orgVault: vault,
  orgEpoch: epoch,
  orgRevision: revision,
  orgSpace: space,
  allowedTags: [],
  wildcard: true,
  policyVersion: 0,
})
