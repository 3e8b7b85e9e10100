import type { Configuration, KoaContextWithOIDC, Provider } from 'oidc-provider'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { createDocumentFetch } from '#api/oauth/client-documents.ts'
import { cookieKeys, signingKeys } from '#api/oauth/derived-keys.ts'
import { errorPage, pagePolicy } from '#api/oauth/pages.ts'
import { createOAuthStore, type StoreBackend } from '#api/oauth/store.ts'
import { applicationScopes, isApplicationActive } from '#shared/access/applications.postgres.ts'
import { Refusal } from '#shared/core/errors.ts'

/** Paths below the issuer, which is the origin of the service. */
export const oauthPaths = {
  authorization: '/oauth/authorize',
  token: '/oauth/token',
  registration: '/oauth/register',
  revocation: '/oauth/revoke',
  jwks: '/oauth/jwks',
  signIn: '/oauth/sign-in',
} as const

/** The resource of every token (RFC 8707). */
export const resourceOf = (publicUrl: string): string => `${publicUrl}/mcp`

/** The resource by any address of `/mcp`, or by the origin; any other as it is given. */
export function readResource(publicUrl: string, given: string): string {
  const { origin, pathname } = URL.parse(given) ?? {}
  const isOurs = origin === publicUrl && /^\/(?:mcp\/?)?$/.test(pathname ?? '')
  return isOurs && !given.includes('#') ? resourceOf(publicUrl) : given
}

const day = 86_400

const lifetimes = {
  AccessToken: 3_600,
  AuthorizationCode: 60,
  // Each use of a refresh token gives another one.
  RefreshToken: 90 * day,
  Grant: 365 * day,
  Interaction: 600,
  Session: 60,
}

/**
 * The authorization server of `/mcp`, by the MCP authorization specification: authorization code with PKCE, tokens
 * for `/mcp` alone, opaque and rotated, registration and metadata documents of clients, revocation.
 */
export async function createOAuthProvider(
  backend: StoreBackend & Pick<ApiBackend, 'log' | 'rateLimiter'>,
  publicUrl: string,
): Promise<Provider> {
  const { Provider, errors, interactionPolicy } = await import('oidc-provider')
  const { config, postgres, log, rateLimiter } = backend
  const { Check, Prompt } = interactionPolicy
  const resource = resourceOf(publicUrl)
  const isSecure = publicUrl.startsWith('https:')
  const cookie = { httpOnly: true, sameSite: 'lax', secure: isSecure } as const
  const alreadyUsed = () => new errors.InvalidGrant('already used')
  /** Counts a request against what it has named by a secret. @throws an error of OAuth with the status 429 */
  const count = async (ctx: KoaContextWithOIDC, name: string): Promise<void> => {
    try {
      await rateLimiter.consumeLoginQuota(ctx, name)
    } catch (error) {
      if (!(error instanceof Refusal) || error.reason !== 'limited') throw error
      const limited = new errors.CustomOIDCProviderError('temporarily_unavailable', error.message)
      throw Object.assign(limited, { status: 429, statusCode: 429 })
    }
  }
  const configuration: Configuration = {
    adapter: name => createOAuthStore(backend, name, alreadyUsed),
    jwks: { keys: signingKeys(config.masterKeys) },
    cookies: { keys: cookieKeys(config.masterKeys), long: cookie, short: cookie },
    routes: oauthPaths,
    ttl: lifetimes,
    scopes: [],
    responseTypes: ['code'],
    clientAuthMethods: ['none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt'],
    clientDefaults: {
      id_token_signed_response_alg: 'Ed25519' as never,
      token_endpoint_auth_method: 'none',
    },
    enabledJWA: { idTokenSigningAlgValues: ['Ed25519'] },
    // Its id is kept until then, so that it is used once.
    async assertJwtClientAuthClaimsAndHeader(_, { exp }) {
      if (Number(exp) > Date.now() / 1_000 + 3_600)
        throw new errors.InvalidClientAuth('exp of client_assertion is more than an hour ahead')
    },
    allowOmittingSingleRegisteredRedirectUri: false,
    pkce: { required: () => true },
    rotateRefreshToken: true,
    issueRefreshToken: async (_, client) => client.grantTypeAllowed('refresh_token'),
    expiresWithSession: async () => false,
    clientBasedCORS: () => true,
    fetch: createDocumentFetch({ allowLoopback: config.allowLoopbackWebhooks }) as never,
    async findAccount(ctx, accountId) {
      const { resource: asked } = ctx.oidc.params ?? {}
      if (typeof asked === 'string') ctx.oidc.params!.resource = readResource(publicUrl, asked)
      await count(ctx, accountId)
      const isActive = await isApplicationActive(postgres.query, accountId)
      return isActive ? { accountId, claims: async () => ({ sub: accountId }) } : undefined
    },
    async loadExistingGrant(ctx) {
      const grantId = ctx.oidc.result?.consent?.grantId
      if (grantId === undefined) return undefined
      await count(ctx, grantId)
      return ctx.oidc.provider.Grant.find(grantId)
    },
    interactions: {
      url: (_, { uid }) => `${oauthPaths.signIn}/${uid}`,
      // Each authorization asks: a browser that stays signed in would grant with a click in a foreign page.
      policy: [
        new Prompt(
          { name: 'login', requestable: true },
          new Check('sign_in', 'The person has to sign in', ({ oidc }) => !oidc.result?.login),
        ),
        new Prompt({ name: 'consent', requestable: true }),
      ],
    },
    renderError(ctx, { error, error_description }) {
      ctx.type = 'html'
      ctx.set('Content-Security-Policy', pagePolicy())
      ctx.body =
        error === 'invalid_client'
          ? errorPage(
              'This application is not known here, or not any more.',
              'Remove the connection to Memory Vault in the application, and add it again: it registers itself then.',
            )
          : errorPage(error_description ?? error)
    },
    features: {
      devInteractions: { enabled: false },
      userinfo: { enabled: false },
      rpInitiatedLogout: { enabled: false },
      registration: { enabled: true, issueRegistrationAccessToken: false },
      revocation: {
        enabled: true,
        allowedPolicy: async (_, client, token) => token.clientId === client.clientId,
      },
      clientIdMetadataDocument: { enabled: true, ack: 'draft-02' },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => resource,
        useGrantedResource: () => true,
        getResourceServerInfo(_: KoaContextWithOIDC, indicator: string) {
          if (indicator !== resource) throw new errors.InvalidTarget(`resource must be ${resource}`)
          return {
            scope: applicationScopes.join(' '),
            audience: resource,
            accessTokenFormat: 'opaque',
          }
        },
      },
    },
  }
  const provider = new Provider(publicUrl, configuration)
  // The protocol that `asReachedPublicly` sets.
  provider.proxy = true
  provider.use(async (ctx, next) => {
    await next()
    if (ctx.oidc.route === 'discovery')
      Object.assign(ctx.body as object, { scopes_supported: applicationScopes })
  })
  provider.on('server_error', (_, error) => log.error({ err: error }, 'oauth.failed'))
  takeMcpClients(provider)
  return provider
}

/** What is used of the metadata of a registration, and what the provider itself adds. */
const usedMetadata = new Set([
  'client_id',
  'client_id_issued_at',
  'client_name',
  'redirect_uris',
  'application_type',
  'token_endpoint_auth_method',
  'grant_types',
  'response_types',
])

/** What is used beside it of a client that signs for itself. */
const signingMetadata = ['token_endpoint_auth_signing_alg', 'jwks', 'jwks_uri']

/** What is served of a list of a registration; a list of which nothing is served stays, and is refused. */
function servedOf(asked: unknown, served: readonly string[]): unknown {
  if (asked === undefined || (Array.isArray(asked) && asked.length === 0)) return served
  const kept = Array.isArray(asked) ? served.filter(one => asked.includes(one)) : []
  return kept.length > 0 ? kept : asked
}

/**
 * Makes of a registration what is served of it (RFC 7591, section 2): null is absence, and what is not served or not
 * used is left out. Who names no grants gets a refresh token, and who names no way to authenticate no secret.
 */
function answerRegistration(metadata: Record<string, unknown>): void {
  const isUsed = usedMetadata.union(
    new Set(metadata.token_endpoint_auth_method === 'private_key_jwt' ? signingMetadata : []),
  )
  for (const [name, value] of Object.entries(metadata))
    if (value === null || value === '' || !isUsed.has(name)) delete metadata[name]
  // Keys are fetched from public addresses alone, with https.
  if (!/^https:/i.test(String(metadata.jwks_uri))) delete metadata.jwks_uri
  metadata.grant_types = servedOf(metadata.grant_types, ['authorization_code', 'refresh_token'])
  metadata.response_types = servedOf(metadata.response_types, ['code'])
  metadata.token_endpoint_auth_method ??= 'none'
}

/** What constructs the metadata of a client; its types leave it out. */
type ClientSchema = {
  application_type?: string
  redirect_uris?: string[]
  redirectUris(...args: unknown[]): void
  scope?: string
  scopes(): void
}

/**
 * Takes what clients of MCP say of themselves. A client that is sent back to this machine, or to an app by a scheme of
 * its own, is a native one, though its metadata leave `application_type` out, as those of most MCP clients do: any port
 * of a loopback address is then taken (RFC 8252, section 7.3).
 */
function takeMcpClients(provider: Provider): void {
  const Client = provider.Client as unknown as {
    Schema: (new () => ClientSchema) & { prototype: ClientSchema }
    needsSecret(metadata: Record<string, unknown>): boolean
  }
  const { Schema } = Client
  // `needsSecret` is the first call on the raw metadata of a registration; the later one has a `Schema`. Checked with
  // oidc-provider 9.13.3, which is pinned for this.
  const needsSecret = Client.needsSecret.bind(Client)
  Client.needsSecret = metadata => {
    if (!(metadata instanceof Schema)) answerRegistration(metadata)
    return needsSecret(metadata)
  }
  // What a client may do is decided by the person and not where it registers: there it may name any scope.
  Schema.prototype.scopes = function () {
    delete this.scope
  }
  const check = Schema.prototype.redirectUris
  Schema.prototype.redirectUris = function (...args) {
    if (this.redirect_uris?.some(isNativeRedirect)) this.application_type = 'native'
    return check.apply(this, args)
  }
}

function isNativeRedirect(uri: string): boolean {
  const url = URL.canParse(uri) ? new URL(uri) : undefined
  if (url?.protocol !== 'http:') return url !== undefined && url.protocol !== 'https:'
  return /^(?:localhost|127\.0\.0\.1|\[::1\])$/.test(url.hostname)
}
