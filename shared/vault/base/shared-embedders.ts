import type { Embedder } from '#shared/domain/embedder.ts'
import { resolveSpaceEmbedders } from '#shared/models/space-embedders.ts'
import { Refusal } from '#shared/core/errors.ts'
import { findSharedSpace } from '#shared/vault/base/org-spaces.postgres.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'

/**
 * Who finds what is shared. What a team shares is embedded with the service's model alone, whatever a
 * member asks with; while a shared vault is on its way there from the space of an earlier model, that
 * one finds what has not arrived. An earlier model that is out of reach is left out: then what it alone
 * would find is found as soon as it has arrived.
 *
 * @param space the space that all of the vault is known to be in; null as long as nobody has looked
 * @returns the service's embedder first.
 * @throws Refusal `upstream` when that one does not answer.
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

/** What a search with an earlier model comes to; undefined when that model is out of reach. */
export const undefinedIfUnavailable = <Found>(
  pending: Promise<Found>,
): Promise<Found | undefined> =>
  pending.catch((error: unknown) => {
    if (error instanceof Refusal && error.reason === 'upstream') return undefined
    throw error
  })

/**
 * Who embeds what an organization shares: as long as its vault is on its way from one space to another,
 * both, so that it is found in either.
 *
 * @returns the service's embedder first.
 * @throws Refusal as `sharedEmbedders`.
 */
export const openOrgEmbedders = async (
  backend: { embedders: Embedders; postgres: Postgres },
  org: string,
): Promise<[Embedder, ...Embedder[]]> =>
  openSharedEmbedders(backend, await findSharedSpace(backend.postgres.query, org))
