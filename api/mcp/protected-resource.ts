import type { Context } from 'koa'
import { publicOrigin } from '#api/edge/request.ts'
import { applicationScopes } from '#shared/access/applications.postgres.ts'

/** Where RFC 9728 looks for the metadata of `/mcp`, and of `/mcp/`. */
export const metadataPaths = [
  '/.well-known/oauth-protected-resource',
  '/.well-known/oauth-protected-resource/mcp',
]

/** Clients compare the resource with the address that they were given, to the slash. */
const slashOf = ({ path }: Context): string => (path.endsWith('/mcp/') ? '/' : '')

/** The origin of the resource: what the operator has set, or where the client has reached it. */
const originOf = (ctx: Context, publicUrl: string | null): string => publicUrl ?? publicOrigin(ctx)

/**
 * The MCP endpoint as a protected resource (RFC 9728).
 *
 * @param publicUrl issuer of the login; null where there is none: then a client is given a Memory Key in its
 *   configuration, and no authorization server is named
 */
export const describeProtectedResource = (ctx: Context, publicUrl: string | null) => ({
  resource: `${originOf(ctx, publicUrl)}/mcp${slashOf(ctx)}`,
  resource_name: 'Memory Vault',
  resource_documentation: `${originOf(ctx, publicUrl)}/docs`,
  bearer_methods_supported: ['header'],
  ...(publicUrl !== null && {
    authorization_servers: [publicUrl],
    scopes_supported: applicationScopes,
  }),
})

/**
 * The challenge of a 401 or 403 at the MCP endpoint (RFC 6750). With a login it names the scopes to ask for; the
 * person may give fewer.
 *
 * @param error the RFC's code, for a request that carried a token
 */
export function bearerChallenge(
  ctx: Context,
  publicUrl: string | null,
  { error, scopes = applicationScopes }: { error?: string; scopes?: readonly string[] } = {},
): string {
  const fields = [
    ...(error ? [`error="${error}"`] : []),
    ...(publicUrl === null ? [] : [`scope="${scopes.join(' ')}"`]),
    `resource_metadata="${originOf(ctx, publicUrl)}${metadataPaths[1]}${slashOf(ctx)}"`,
  ]
  return `Bearer ${fields.join(', ')}`
}

const noLogin =
  'This service has no login and no OAuth server: put a Memory Key into the configuration of this client'

/**
 * The answer to a client that registers itself, which it does where it finds no authorization server. Its
 * fields are ours and, as RFC 7591 has them, `error_description`, which clients show.
 */
export const refusedRegistration = {
  error: noLogin,
  hint: 'Send the header "Authorization: Bearer mk_…" with every request to /mcp',
  error_description: `${noLogin}, as the header "Authorization: Bearer mk_…"`,
}
