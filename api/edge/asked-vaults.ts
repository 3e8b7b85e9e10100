import type { Context } from 'koa'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { embeddingModelForRequest, sendInputNotes } from '#api/edge/request.ts'
import type { Caller } from '#shared/access/caller.ts'
import { findTeamOfUser } from '#shared/access/key-row.postgres.ts'
import { Refusal } from '#shared/core/errors.ts'
import type { InputNotes } from '#shared/core/lenient-input.ts'
import { expiredRemain } from '#shared/core/refusals.ts'
import { isOrganizationKey } from '#shared/domain/member-scope.ts'
import type { VaultKind } from '#shared/domain/memory.ts'

/**
 * The caller for the vaults that a question names; without any, the caller as it is. One that the key does not open is
 * left out and noted.
 *
 * @param namedModels the embedding models that body and query name
 * @returns also the vaults that are searched, where some were named
 * @throws Refusal `forbidden` where the key opens none of them; `unavailable` while the owner's holds expired memories.
 */
export async function openAskedVaults(
  ctx: Context,
  backend: ApiBackend,
  caller: Caller,
  asked: readonly VaultKind[] | undefined,
  { notes, namedModels }: { notes: InputNotes; namedModels: readonly (string | undefined)[] },
): Promise<Caller & { searched?: VaultKind[] }> {
  if (!asked || !caller.permissions.retrieve) return caller
  const { owner, memberScope, scope } = caller
  const main = owner ? 'user' : 'own'
  const isWhole = owner?.keyRow.rights === 'all'
  const team = asked.includes('team')
    ? isWhole
      ? await findTeamOfUser(backend.postgres.query, scope.vault)
      : memberScope
    : null
  const opened: Record<VaultKind, boolean> = {
    own: owner ? isWhole : !memberScope || !isOrganizationKey(memberScope),
    user: owner !== undefined,
    team: Boolean(team),
  }
  const searched = asked.filter(kind => opened[kind])
  for (const kind of asked) if (!opened[kind]) notes.noteIgnored(`vaults.${kind}`)
  sendInputNotes(ctx, notes)
  if (searched.length === 0)
    throw new Refusal(
      'forbidden',
      `This key does not open what it asks: ${asked.join(', ')}`,
      'own is the vault of the key, user that of X-Memory-User, team the shared memory of a member',
    )
  const own = owner && searched.includes('own') ? await withoutExpired(backend, owner) : undefined
  return {
    ...caller,
    memberScope: team ?? null,
    searched,
    asked: {
      main,
      searchesMain: searched.includes(main),
      ...(own && {
        owner: { scope: own.scope, embeddings: embeddingModelForRequest(ctx, own, ...namedModels) },
      }),
    },
  }
}

/** An owner as it is when the expired memories of its vault are removed. */
async function withoutExpired({ expiry, findKey }: ApiBackend, owner: Caller): Promise<Caller> {
  const { keyRow, scope, keyHash } = owner
  if (!keyRow.hasExpired) return owner
  if (!(await expiry.purgeExpired(scope.vault, 5_000))) throw expiredRemain()
  const now = await findKey(keyHash)
  if (!now) throw expiredRemain()
  return { ...owner, scope: { vault: now.vault, epoch: now.epoch, revision: now.revision } }
}
