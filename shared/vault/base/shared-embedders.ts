import { visibilityOf } from '#shared/domain/visibility.ts'
import { toSharedVaultScope, type MemberScope } from '#shared/domain/member-scope.ts'
import type { Embedder } from '#shared/domain/embedder.ts'
import { resolveSpaceEmbedders } from '#shared/models/space-embedders.ts'
import { Refusal } from '#shared/core/errors.ts'
import { findSharedSpace } from '#shared/vault/base/org-spaces.postgres.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'

/**
 * The embedders to search shared memories with: the service's own, and that of the space which a shared vault is
 * leaving. A former model that is unreachable is left out: its memories are found when they have moved.
 *
 * @param space the space that holds all of the vault; null: not determined yet
 * @returns the service's embedder first.
 * @throws Refusal `upstream` when the service's model does not answer.
 */
export async function openSharedEmbedders(
  { embedders }: { embedders: Embedders },
  space: string | null,
): Promise<[Embedder, ...Embedder[]]> {
  const current = await embedders.get()
  if (space === null || space === current.space) return [current]
  const former = await undefinedIfUnavailable(resolveSpaceEmbedders(embedders, [space]))
  const others = former?.embedders ?? []
  return [current, ...others.filter(other => other.space !== current.space)]
}

/** Resolves to undefined when the embedding model does not answer. */
export const undefinedIfUnavailable = <Result>(
  pending: Promise<Result>,
): Promise<Result | undefined> =>
  pending.catch((error: unknown) => {
    if (error instanceof Refusal && error.reason === 'upstream') return undefined
    throw error
  })

/**
 * The embedders to write shared memories with: both, while the vault moves between two spaces.
 *
 * @throws Refusal as `openSharedEmbedders`.
 */
export const openOrgEmbedders = async (
  backend: { embedders: Embedders; postgres: Postgres },
  org: string,
): Promise<[Embedder, ...Embedder[]]> =>
  openSharedEmbedders(backend, await findSharedSpace(backend.postgres.query, org))

/** The part of an organization's shared vault that a member may see. */
export const sharedPartition = (member: MemberScope) => ({
  scope: toSharedVaultScope(member),
  session: null,
  audience: visibilityOf(member),
})
