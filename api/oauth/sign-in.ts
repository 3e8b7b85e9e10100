import type { Context } from 'koa'
import type { Provider } from 'oidc-provider'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { plainText } from '#api/edge/html.ts'
import { authenticateCaller, openUser } from '#api/edge/memory-key-auth.ts'
import { sealTicket, ticketHeader, type Ticket } from '#api/edge/ticket.ts'
import { resourceOf } from '#api/oauth/provider.ts'
import { oauthRecordId } from '#api/oauth/store.ts'
import {
  applicationScopes,
  insertApplication,
  type ApplicationScope,
} from '#shared/access/applications.postgres.ts'
import { keepOAuthClient } from '#shared/access/oauth-records.postgres.ts'
import { actorOf, requireNamedUser, requireNotRotated, type Caller } from '#shared/access/caller.ts'
import { looksLikeKey } from '#shared/access/key.ts'
import { parseExternalId } from '#shared/access/user-keys.ts'
import { Refusal } from '#shared/core/errors.ts'
import { refusal } from '#shared/core/refusal.ts'
import { mintId } from '#shared/core/ids.ts'
import { recordAccountEvent } from '#shared/events/account-events.postgres.ts'

/** A client that asks a person to let it in. */
export type ConsentRequest = {
  uid: string
  clientId: string
  clientName: string
  /** The host of the metadata document that its id names; null for one that has registered itself. */
  clientHost: string | null
  redirectUri: string
  redirectHost: string
  scopes: ApplicationScope[]
}

/**
 * What a sign-in under way is about, by the cookie of its browser.
 *
 * @throws Refusal `missing` for another browser, and once it has ended.
 */
export async function readConsentRequest(
  ctx: Context,
  provider: Provider,
): Promise<ConsentRequest> {
  const interaction = await provider.interactionDetails(ctx.req, ctx.res).catch(() => undefined)
  const { client_id: clientId, redirect_uri: redirectUri, scope } = interaction?.params ?? {}
  const client =
    typeof clientId === 'string'
      ? await provider.Client.find(clientId).catch(() => undefined)
      : undefined
  if (!interaction || !client || interaction.uid !== ctx.params.uid) {
    throw refusal('missing', 'applicationSignInEnded')
  }
  const asked = String(scope).split(' ')
  const { clientId: id } = client
  const { protocol, host } = new URL(String(redirectUri))
  return {
    uid: interaction.uid,
    clientId: id,
    clientName:
      plainText(client.clientName ?? '')
        .trim()
        .slice(0, 80) || 'An application',
    clientHost: /^https:/i.test(id) ? new URL(id).host : null,
    redirectUri: String(redirectUri),
    redirectHost: host || protocol,
    scopes: applicationScopes.filter(name => asked.includes(name)),
  }
}

export type Consent = {
  key: string
  /** The key of what a person who has logged in has chosen, in place of `key`. */
  chosen?: Pick<Ticket, 'keyHash' | 'maskedKey'>
  user: string
  scopes: readonly string[]
}

/**
 * Lets a client into the vault of a key, or of a user of an owner key.
 *
 * @returns the application's id and the id of its grant
 * @throws Refusal as `authenticateCaller`, and when the key or the person gives no right.
 */
export async function connectApplication(
  ctx: Context,
  backend: ApiBackend,
  {
    provider,
    publicUrl,
    asking,
    consent,
  }: { provider: Provider; publicUrl: string } & { asking: ConsentRequest; consent: Consent },
): Promise<{ application: string; grantId: string }> {
  const caller = await signIn(ctx, backend, consent)
  const scopes = asking.scopes.filter(name => consent.scopes.includes(name))
  requireScopesOfKey(caller, scopes)
  const { clientId, clientName, redirectHost } = asking
  const client = oauthRecordId(backend.config, 'Client', clientId)
  const application = mintId()
  const grant = new provider.Grant({ accountId: application, clientId })
  grant.addResourceScope(resourceOf(publicUrl), scopes.join(' '))
  await backend.postgres.transaction(async tx => {
    await insertApplication(tx, {
      id: application,
      account: caller.account,
      vault: caller.scope.vault,
      keyHash: caller.owner.keyHash,
      externalId: consent.user === '' ? null : consent.user,
      client,
      clientId,
      clientName,
      redirectHost,
      scopes,
    })
    await keepOAuthClient(tx.query, client)
    await recordAccountEvent(tx, {
      account: caller.account,
      actor: actorOf(caller),
      action: 'application.connected',
      subject: application,
      change: [null, { name: clientName, scopes }],
    })
  })
  return { application, grantId: await grant.save() }
}

/** The caller of the key, or of the user that it names; `owner` is that of the key itself. */
async function signIn(
  ctx: Context,
  backend: ApiBackend,
  { key, chosen, user }: Consent,
): Promise<Caller & { owner: Caller }> {
  if (chosen) {
    const ticket = { ...chosen, mode: 'on', externalId: null } as const
    // `authenticateCaller` reads the ticket from this header, as for /mcp.
    ctx.req.headers[ticketHeader] = sealTicket(backend.seal, ticket, backend.now())
  } else if (!looksLikeKey(key)) {
    throw new Refusal('unauthenticated', 'This is not a Memory Key')
  }
  const owner = await authenticateCaller(ctx, backend, chosen ? {} : { memoryKey: key })
  requireNotRotated(owner)
  if (user === '') {
    requireNamedUser(owner)
    return { ...owner, owner }
  }
  const caller = await openUser(ctx, backend, owner, parseExternalId(user, 'The id of the user'))
  return { ...caller, owner }
}

/** @throws Refusal `forbidden` when nothing is chosen, or the key is used with a suffix that excludes it. */
function requireScopesOfKey(
  { mode, permissions }: Caller,
  scopes: readonly ApplicationScope[],
): void {
  if (scopes.length === 0) throw new Refusal('forbidden', 'Choose what the application may do')
  const beyond = scopes.filter(scope =>
    scope === 'read' ? !permissions.retrieve : !permissions.store,
  )
  if (beyond.length === 0) return
  throw new Refusal('forbidden', `The key with :${mode} does not allow ${beyond.join(', ')}`)
}
