import type { Context } from 'koa'
import { publicOrigin } from '#api/edge/request.ts'

/** Where RFC 9728 looks for the metadata of `/mcp`. */
export const metadataPaths = [
  '/.well-known/oauth-protected-resource',
  '/.well-known/oauth-protected-resource/mcp',
]

/**
 * The MCP endpoint as a protected resource (RFC 9728). There is no authorization server and so none is
 * named: a client is given a Memory Key in its configuration.
 */
export const describeProtectedResource = (ctx: Context) => ({
  resource: `${publicOrigin(ctx)}/mcp`,
  resource_name: 'Memory Vault',
  resource_documentation: `${publicOrigin(ctx)}/docs`,
  bearer_methods_supported: ['header'],
})

/** The challenge of a 401 at the MCP endpoint. */
export const bearerChallenge = (ctx: Context): string =>
  `Bearer resource_metadata="${publicOrigin(ctx)}${metadataPaths[1]}"`

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
