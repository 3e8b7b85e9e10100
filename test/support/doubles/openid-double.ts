import { createHash, generateKeyPairSync, randomUUID, sign } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Test } from 'tap'
import { listen } from '#test/support/start/listen.ts'

type Claims = Record<string, unknown>

/** What a provider sends and takes. */
export type OpenIdShape = {
  provider: string
  source: string
  /** Path of the issuer. */
  path?: string
  /** The values of `token_endpoint_auth_methods_supported`; null: not named. */
  methods: readonly string[] | null
  /** The one that the client was made with; every named one, when missing. */
  takes?: string
  /** Claims of the id token, beside those that each has. */
  claims: Claims
  /** What userinfo answers; null: there is none. */
  userinfo: Claims | null
  /** Whether the answer to an authorization names the issuer. */
  iss?: boolean
  /** Whether the operator has to vouch for emails. */
  vouches?: boolean
  /** What the person is told; missing: the sign-in succeeds with `email`. */
  refused?: RegExp
  email?: string
}

const secret = 'a secret + of/the%vault&:é'

/** An OpenID provider over the wire that answers as one of the table does; each authorization is granted at once. */
export async function startOpenIdDouble(t: Test, shape: OpenIdShape) {
  const server = createServer()
  const base = await listen(t, server)
  const issuer = `${base}${shape.path ?? ''}`
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const codes = new Map<string, { nonce: string; challenge: string }>()
  const asked: string[] = []
  const subject = 'a-subject'

  const idToken = (nonce: string): string => {
    const now = Math.floor(Date.now() / 1000)
    const payload = { iss: issuer, aud: 'vault', sub: subject, nonce, iat: now, exp: now + 600 }
    const parts = [
      { alg: 'RS256', kid: 'one' },
      { ...payload, ...shape.claims },
    ]
    const text = parts
      .map(part => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.')
    return `${text}.${sign('sha256', Buffer.from(text), privateKey).toString('base64url')}`
  }

  const authenticates = (request: IncomingMessage, form: URLSearchParams): boolean => {
    const taken = shape.takes ? [shape.takes] : (shape.methods ?? ['client_secret_basic'])
    const header = /^Basic (.+)$/.exec(request.headers.authorization ?? '')?.[1]
    if (header !== undefined) {
      asked.push('client_secret_basic')
      const [id, given] = Buffer.from(header, 'base64').toString().split(':')
      const right = decodeURIComponent(given!.replaceAll('+', ' ')) === secret
      return taken.includes('client_secret_basic') && id === 'vault' && right
    }
    asked.push('client_secret_post')
    return taken.includes('client_secret_post') && form.get('client_secret') === secret
  }

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<unknown> => {
    const json = (status: number, body: unknown, type = 'application/json'): void => {
      response.writeHead(status, { 'content-type': type })
      response.end(JSON.stringify(body))
    }
    const { pathname, searchParams } = new URL(request.url!, base)
    if (pathname.endsWith('/.well-known/openid-configuration'))
      return json(200, {
        issuer,
        authorization_endpoint: `${base}/authorize`,
        token_endpoint: `${base}/token`,
        jwks_uri: `${base}/keys`,
        ...(shape.userinfo && { userinfo_endpoint: `${base}/userinfo` }),
        ...(shape.methods && { token_endpoint_auth_methods_supported: shape.methods }),
        ...(shape.iss && { authorization_response_iss_parameter_supported: true }),
        id_token_signing_alg_values_supported: ['RS256'],
        response_types_supported: ['code'],
        subject_types_supported: ['public'],
      })
    if (pathname === '/keys')
      return json(200, {
        keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'one', use: 'sig', alg: 'RS256' }],
      })
    if (pathname === '/authorize') {
      const code = randomUUID()
      codes.set(code, {
        nonce: searchParams.get('nonce')!,
        challenge: searchParams.get('code_challenge')!,
      })
      const to = new URL(searchParams.get('redirect_uri')!)
      to.searchParams.set('code', code)
      to.searchParams.set('state', searchParams.get('state')!)
      if (shape.iss) to.searchParams.set('iss', issuer)
      response.writeHead(302, { location: to.href })
      return response.end()
    }
    if (pathname === '/userinfo') {
      const body = shape.userinfo as Claims & { status?: number; type?: string }
      return json(body.status ?? 200, { sub: subject, ...body }, body.type)
    }
    let text = ''
    for await (const chunk of request) text += String(chunk)
    const form = new URLSearchParams(text)
    if (!authenticates(request, form)) return json(401, { error: 'invalid_client' })
    const begun = codes.get(form.get('code') ?? '')
    const verifier = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    if (begun?.challenge !== verifier) return json(400, { error: 'invalid_grant' })
    codes.delete(form.get('code')!)
    const tokens = { access_token: randomUUID(), token_type: 'Bearer', expires_in: 600 }
    return json(200, { ...tokens, id_token: idToken(begun.nonce) })
  }
  server.on('request', (request, response) => void answer(request, response))

  const vouches = shape.vouches ?? false
  const oidc = {
    issuer,
    clientId: 'vault',
    clientSecret: secret,
    name: shape.provider,
    vouches,
    groupsClaim: null,
  }
  return { oidc, asked }
}

const both = ['client_secret_post', 'client_secret_basic']

/** Real providers, as far as their pages and reports say what they send. */
export const openIdShapes: readonly OpenIdShape[] = [
  {
    provider: 'Microsoft Entra',
    source: 'learn.microsoft.com, "ID token claims reference"; onyx-dot-app/onyx#13298',
    path: '/11111111-2222-3333-4444-555555555555/v2.0',
    methods: ['client_secret_post', 'private_key_jwt', 'client_secret_basic'],
    claims: {
      email: 'Ada@Example.com',
      name: 'Ada',
      oid: '00000000-0000-0000-66f3-3332eca7ea81',
      preferred_username: 'ada@example.com',
      tid: '11111111-2222-3333-4444-555555555555',
      ver: '2.0',
    },
    userinfo: { email: 'Ada@Example.com', name: 'Ada' },
    refused: /has not verified/,
  },
  {
    provider: 'Microsoft Entra, for which the operator vouches',
    source: 'the same',
    path: '/11111111-2222-3333-4444-555555555555/v2.0',
    methods: ['client_secret_post', 'private_key_jwt', 'client_secret_basic'],
    claims: { email: 'Ada@Example.com', ver: '2.0' },
    userinfo: { email: 'Ada@Example.com' },
    vouches: true,
    email: 'ada@example.com',
  },
  {
    provider: 'Microsoft Entra with the optional claim xms_edov',
    source: 'learn.microsoft.com, "Migrate away from using email claims"',
    methods: both,
    claims: { email: 'ada@example.com', xms_edov: '1' },
    userinfo: null,
    email: 'ada@example.com',
  },
  {
    provider: 'Authentik with its stock mapping',
    source: 'onyx-dot-app/onyx PR 13300; docs.goauthentik.io, "Email scope verification"',
    path: '/application/o/vault/',
    methods: both,
    claims: { email: 'ada@example.com', email_verified: false, groups: ['staff'], acr: 'default' },
    userinfo: { email: 'ada@example.com', email_verified: false },
    vouches: true,
    refused: /has not verified/,
  },
  {
    provider: 'Amazon Cognito',
    source: 'docs.aws.amazon.com, "UserInfo endpoint"',
    path: '/eu-central-1_abc',
    methods: ['client_secret_basic', 'client_secret_post'],
    claims: { token_use: 'id', 'cognito:username': 'ada' },
    userinfo: { username: 'ada', email: 'ada@example.com', email_verified: 'true' },
    email: 'ada@example.com',
  },
  {
    provider: 'Apple',
    source: 'developer.apple.com, "Authenticating users with Sign in with Apple"',
    methods: ['client_secret_post'],
    claims: {
      email: 'x@privaterelay.appleid.com',
      email_verified: 'true',
      is_private_email: 'true',
    },
    userinfo: null,
    email: 'x@privaterelay.appleid.com',
  },
  {
    provider: 'Authelia, whose client was made for Basic',
    source: 'authelia/authelia#6860; authelia.com, "OpenID Connect 1.0 claims"',
    methods: ['client_secret_basic', 'client_secret_post', 'private_key_jwt', 'none'],
    takes: 'client_secret_basic',
    claims: { amr: ['pwd'], azp: 'vault' },
    userinfo: { email: 'ada@example.com', email_verified: true, alt_emails: ['a@example.com'] },
    iss: true,
    email: 'ada@example.com',
  },
  {
    provider: 'Ory Hydra',
    source: 'appsup-dart/openid_client#69; ory.sh, "OAuth 2.0 client authentication"',
    path: '/',
    methods: ['client_secret_post', 'client_secret_basic', 'private_key_jwt', 'none'],
    takes: 'client_secret_basic',
    claims: { at_hash: 'x', auth_time: 1, rat: 1 },
    userinfo: { email: 'ada@example.com', email_verified: true },
    email: 'ada@example.com',
  },
  {
    provider: 'one that names Basic alone',
    source: 'OpenID Connect Core, section 9',
    methods: ['client_secret_basic'],
    claims: { email: 'ada@example.com', email_verified: true },
    userinfo: null,
    email: 'ada@example.com',
  },
  {
    provider: 'one that names no method',
    source: 'OpenID Connect Discovery, section 3',
    methods: null,
    claims: { email: 'ada@example.com', email_verified: true },
    userinfo: null,
    email: 'ada@example.com',
  },
  {
    provider: 'Keycloak',
    source: 'keycloak.org, "Securing applications"; a realm of 26',
    path: '/realms/vault',
    methods: ['private_key_jwt', ...both, 'tls_client_auth', 'client_secret_jwt'],
    claims: { email: 'ada@example.com', email_verified: true, sid: 'x', azp: 'vault', typ: 'ID' },
    userinfo: { email: 'ada@example.com', email_verified: true },
    iss: true,
    email: 'ada@example.com',
  },
  {
    provider: 'Okta',
    source:
      'developer.okta.com, "OpenID Connect & OAuth 2.0 API": a thin token beside an access token',
    methods: ['client_secret_basic', 'client_secret_post', 'client_secret_jwt', 'none'],
    claims: { ver: 1, jti: 'ID.x', amr: ['pwd'], idp: '00o', auth_time: 1, at_hash: 'x' },
    userinfo: { email: 'ada@example.com', email_verified: true, zoneinfo: 'UTC' },
    email: 'ada@example.com',
  },
  {
    provider: 'Google',
    source: 'developers.google.com, "OpenID Connect"',
    methods: both,
    claims: { email: 'ada@example.com', email_verified: true, hd: 'example.com', azp: 'vault' },
    userinfo: { email: 'ada@example.com', email_verified: true },
    iss: true,
    email: 'ada@example.com',
  },
  {
    provider: 'a K of Kelvin in an email',
    source: 'U+212A is a k in lower case',
    methods: both,
    claims: { email: 'mi\u212Ae@Example.com', email_verified: true },
    userinfo: null,
    email: 'mi\u212Ae@example.com',
  },
  ...[
    ['a list of emails', { email: ['ada@example.com'], email_verified: true }],
    ['an email with U+0000', { email: 'ada\u0000@example.com', email_verified: true }],
    ['an email with a direction mark', { email: 'ada\u202E@example.com', email_verified: true }],
  ].map(([provider, claims]) => ({
    provider: provider as string,
    source: 'own',
    methods: both,
    claims: claims as Claims,
    userinfo: null,
    refused: /has not verified/,
  })),
  ...[
    ['userinfo of another person', { sub: 'another', email: 'ada@example.com' }],
    ['userinfo that answers 401', { status: 401 }],
    ['userinfo that answers a JWT', { type: 'application/jwt' }],
  ].map(([provider, userinfo]) => ({
    provider: provider as string,
    source: 'own',
    methods: both,
    claims: {},
    userinfo: userinfo as Claims,
    refused: /was not confirmed/,
  })),
  {
    provider: 'one that refuses the secret',
    source: 'own',
    methods: both,
    takes: 'private_key_jwt',
    claims: {},
    userinfo: null,
    refused: /does not accept this service/,
  },
]
