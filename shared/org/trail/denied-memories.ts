import type { Log } from '#shared/core/log.ts'
import type { Seal } from '#shared/core/seal.ts'
import { toSharedVaultScope, type MemberScope } from '#shared/domain/member-scope.ts'
import type { Memory } from '#shared/domain/memory.ts'
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
import type { Retrieval } from '#shared/vault/read/search/retrieval-trail.ts'

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
export async function findDeniedMemories(
  backend: Parameters<typeof recall>[0] & { postgres: Postgres; seal: Seal; log: Log },
): Promise<number> {
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
  backend: Parameters<typeof recall>[0] & { postgres: Postgres; seal: Seal; log: Log },
  open: OpenQuestion,
): Promise<SharedRetrieval['denied']> {
  const question = openQuestion(backend.seal, open)
  const rows = await findKeptBack(backend, toViewer(open), question)
  return rows.map(({ id, tags = [] }) => ({ id, tags: [...tags] }))
}

/**
 * Finds what a question would be given of the shared memory without the wall, and is not with it, best first: 50 at
 * most.
 *
 * @throws Refusal as `recall`.
 */
export async function findKeptBack(
  backend: Parameters<typeof recall>[0],
  viewer: MemberScope,
  { limit = rowsMax, ...question }: NonNullable<Retrieval['question']>,
): Promise<Memory[]> {
  const rows = await recall(
    backend,
    { scope: toSharedVaultScope(viewer), memberScope: { ...viewer, wildcard: true } },
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
  const visibility = visibilityOf(viewer)
  return rows.map(({ memory }) => memory).filter(({ tags = [] }) => !isPermitted(visibility, tags))
}

/** The scope of no member that sees what the one who asked might see. */
const toViewer = (question: OpenQuestion): MemberScope => ({
  org: question.org,
  memberId: question.org,
  teamMemberId: '',
  orgVault: question.vault,
  orgEpoch: question.epoch,
  orgRevision: question.revision,
  orgSpace: question.space,
  allowedTags: question.allowedTags,
  wildcard: question.wildcard,
  policyVersion: 0,
})
