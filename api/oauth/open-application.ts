import type { Context } from 'koa'
import { openOAuthPayload, oauthRecordId } from '#api/oauth/store.ts'
import { resourceOf } from '#api/oauth/provider.ts'
import { namesUser } from '#api/edge/memory-key-auth.ts'
import type { Ticket } from '#api/edge/ticket.ts'
import {
  applicationScopes,
  findTokenApplication,
  noteApplicationUse,
  type ApplicationScope,
} from '#shared/access/applications.postgres.ts'
import type { KeyMode } from '#shared/access/key.ts'
import { refusal } from '#shared/core/refusal.ts'
import type { Backend } from '#shared/backend.ts'

/**
 * The grant of an access token at `/mcp`: its key is live, and it was issued for `/mcp` (RFC 8707).
 *
 * @throws Refusal `unauthenticated` for every other token; `invalid` for a request that names a user.
 */
export async function openAccessToken(
  ctx: Context,
  backend: Pick<Backend, 'postgres' | 'seal' | 'config'>,
  { token, publicUrl }: { token: string; publicUrl: string },
): Promise<Ticket & { vault: string; scopes: readonly ApplicationScope[] }> {
  const id = oauthRecordId(backend.config, 'AccessToken', token)
  const found = await findTokenApplication(backend.postgres.query, id)
  if (!found) throw refusal('unauthenticated', 'accessTokenEnded')
  const { aud, scope } = openOAuthPayload(backend, {
    model: 'AccessToken',
    id,
    sealed: found.payload,
  })
  if (aud !== resourceOf(publicUrl)) throw refusal('unauthenticated', 'accessTokenEnded')
  if (namesUser(ctx)) throw refusal('invalid', 'loginNamesOtherVault')
  if (!found.isNoted) await noteApplicationUse(backend.postgres.query, found.id)
  const granted = new Set(scope?.split(' '))
  const scopes = applicationScopes.filter(name => granted.has(name))
  const { vault, keyHash, maskedKey, externalId } = found
  return { vault, scopes, keyHash, maskedKey, externalId, mode: modeOfScopes(scopes) }
}

/** The rights of a key that these scopes leave. Which of the tools that write may be used is decided at `/mcp`. */
function modeOfScopes(scopes: readonly ApplicationScope[]): KeyMode {
  const mayStore = scopes.includes('write') || scopes.includes('delete')
  if (scopes.includes('read')) return mayStore ? 'on' : 'read'
  return mayStore ? 'write' : 'off'
}
