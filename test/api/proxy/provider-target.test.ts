import fc from 'fast-check'
import type { Context } from 'koa'
import t from 'tap'
import { buildProviderTarget } from '#api/proxy/provider-target.ts'
import type { ApiFormat, BuiltInName } from '#shared/core/provider-registry.ts'
import { providersOf } from '#test/support/start/providers.ts'

const ctxWith = (headers: Record<string, string>, querystring = ''): Context => {
  const lower = Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
  )
  return { querystring, headers: lower } as Context
}

const memoryKey = `mk_${'a'.repeat(32)}`

const providerHeaders = { pass: [] as string[], keep: [] as string[] }

const targetFor = (
  ctx: Context,
  provider: BuiltInName = 'openai',
  format: ApiFormat = 'openai',
  path = '/chat/completions',
) =>
  buildProviderTarget(
    ctx,
    {
      providers: providersOf({ OLLAMA_BASE_URL: 'http://models.example:11434/v1' }),
      providerHeaders,
    },
    { model: { provider, name: 'm' }, format, path, key: 'sk-1' },
  )

t.test('where the providers are, and how they want their keys', async t => {
  const plain = ctxWith({})
  const at = (provider: BuiltInName, format: ApiFormat, path: string): [string, object] => {
    const { url, headers } = targetFor(plain, provider, format, path)
    return [url.href, headers]
  }
  const chat = '/chat/completions'
  const bearer = { 'accept-encoding': 'identity', authorization: 'Bearer sk-1' }
  t.same(at('openai', 'openai', chat), ['https://api.openai.com/v1/chat/completions', bearer])
  t.same(at('anthropic', 'openai', chat), ['https://api.anthropic.com/v1/chat/completions', bearer])
  t.same(at('google', 'openai', chat), [
    'https://generativelanguage.googleapis.com/v1beta/openai/chat/completions',
    bearer,
  ])
  t.same(at('ollama', 'openai', chat), ['http://models.example:11434/v1/chat/completions', bearer])
  t.same(at('anthropic', 'anthropic', '/v1/messages'), [
    'https://api.anthropic.com/v1/messages',
    { 'accept-encoding': 'identity', 'x-api-key': 'sk-1' },
  ])
  t.same(at('google', 'google', '/v1beta/models/m:generateContent'), [
    'https://generativelanguage.googleapis.com/v1beta/models/m:generateContent',
    { 'accept-encoding': 'identity', 'x-goog-api-key': 'sk-1' },
  ])
})

t.test('a host of Azure has its key in a header of its own; a look-alike has not', async t => {
  const headersAt = (baseUrl: string): object => {
    const providers = providersOf({ PROVIDERS: 'own', OWN_BASE_URL: baseUrl })
    const call = { model: { provider: 'own', name: 'm' }, format: 'openai', path: '/x' } as const
    return buildProviderTarget(
      ctxWith({}),
      { providers, providerHeaders },
      { ...call, key: 'sk-1' },
    ).headers
  }
  for (const host of ['a.openai.azure.com', 'A.services.ai.azure.com', 'a.openai.azure.us']) {
    const headers = headersAt(`https://${host}/openai/v1/`)
    t.same(headers, { 'accept-encoding': 'identity', 'api-key': 'sk-1' }, host)
  }
  for (const host of ['openai.azure.com.example', 'models.ai.azure.com'])
    t.match(headersAt(`https://${host}/openai/v1`), { authorization: 'Bearer sk-1' }, host)
})

t.test('invalid: Ollama where nobody has said where it is', async t => {
  t.throws(
    () =>
      buildProviderTarget(
        ctxWith({}),
        { providers: providersOf({}), providerHeaders },
        { model: { provider: 'ollama', name: 'm' }, format: 'openai', path: '/x' },
      ),
    { reason: 'invalid', message: 'ollama is not available here', hint: /OLLAMA_BASE_URL/ },
  )
})

t.test('of the query, what is the provider’s; no switch, no key', async t => {
  const query = `alt=sse&memory=off&mode=read&store=false&key=${memoryKey}&beta=true&x=${memoryKey}&${memoryKey}=1&q=a%20b&note=my+${memoryKey}`
  t.equal(targetFor(ctxWith({}, query)).url.search, '?alt=sse&beta=true&q=a+b')
})

t.test(
  'what is paid for, ranked, traced or cached by goes to the provider, by whatever name',
  async t => {
    const wanted =
      'content-type accept user-agent range http-referer x-title x-openrouter-title x-openrouter-categories session-id thread-id ' +
      'x-claude-code-session-id x-grok-conv-id x-session-affinity x-goog-user-project x-goog-upload-command traceparent ' +
      'x-client-request-id x-app anthropic-beta openai-project helicone-auth x-portkey-config cf-aig-metadata x-new-in-2031'
    const sent = Object.fromEntries(wanted.split(' ').map(name => [name, `of ${name}`]))
    t.match(targetFor(ctxWith(sent)).headers, sent)
  },
)

const kept =
  'cookie cookie2 te trailer upgrade keep-alive transfer-encoding expect proxy-authorization proxy-connection x-forwarded-for ' +
  'x-forwarded-access-token forwarded x-real-ip cf-connecting-ip cf-access-jwt-assertion cdn-loop true-client-ip x-client-ip ' +
  'x-memory-mode x-memory-key x-memory-user x-memory-anything x-provider-key x-provider x-session-id x-embedding-model host ' +
  'connection x-api-key api-key via authorization x-goog-api-key x-admin-key x-dashboard-key idempotency-key x-request-id ' +
  'accept-encoding content-encoding content-length content-md5 signature origin referer sec-fetch-site x-original-url ' +
  'x-http-method-override x-amzn-oidc-data x-goog-iap-jwt-assertion x-auth-request-email x-ms-client-principal remote-user'
const passing = 'accept user-agent x-title anthropic-beta x-stainless-lang'.split(' ')

t.test(
  'what is ours, of the connection or a credential stays, in any spelling, and every Memory Key',
  async t => {
    const spelled = (name: string) =>
      fc
        .infiniteStream(fc.boolean())
        .map(up => name.replaceAll(/./g, sign => (up.next().value ? sign.toUpperCase() : sign)))
    const name = fc.constantFrom(...passing, ...kept.split(' ')).chain(spelled)
    const value = fc.oneof(
      fc.stringMatching(/^[\x21-\x7E]{1,20}$/),
      fc.constantFrom(memoryKey, `Bearer ${memoryKey}`, `x ${memoryKey}:read`, 'mk_short'),
    )
    await fc.assert(
      fc.asyncProperty(fc.dictionary(name, value, { maxKeys: 12 }), async sent => {
        const { headers } = targetFor(ctxWith(sent))
        const { authorization, 'accept-encoding': encoding, ...rest } = headers
        if (authorization !== 'Bearer sk-1' || encoding !== 'identity') throw new Error('ours')
        for (const [name, value] of Object.entries(rest)) {
          if (!passing.includes(name)) throw new Error(`${name} left`)
          if (value.includes('mk_')) throw new Error(`a key left in ${name}`)
        }
      }),
      { numRuns: 500, seed: 20_261_121 },
    )
    const sent = Object.fromEntries(kept.split(' ').map(name => [name, 'x']))
    const { headers } = targetFor(ctxWith({ ...sent, connection: 'close, X-Hop', 'x-hop': '1' }))
    t.same(headers, { 'accept-encoding': 'identity', authorization: 'Bearer sk-1' })
    t.notOk(memoryKey in targetFor(ctxWith({ [memoryKey]: '1' })).headers, 'a key for a name')
  },
)

/** What access proxies, clouds and load balancers add about the person and the network, with the page that says so. */
const addedByProxies: [product: string, page: string, names: string][] = [
  [
    'Pomerium',
    'pomerium.com, "Pass Identity Headers"',
    'X-Pomerium-Jwt-Assertion X-Pomerium-Claim-Email',
  ],
  [
    'Authentik',
    'docs.goauthentik.io, "Proxy provider"',
    'X-Authentik-Username X-Authentik-Groups X-Authentik-Email X-Authentik-Name X-Authentik-Uid X-Authentik-Jwt X-Authentik-Meta-App',
  ],
  [
    'Authelia',
    'authelia.com, "Trusted Header SSO"',
    'Remote-User Remote-Groups Remote-Email Remote-Name',
  ],
  ['Teleport', 'goteleport.com, "Use JWT tokens"', 'Teleport-Jwt-Assertion'],
  [
    'Tailscale',
    'tailscale.com, "Tailscale identity headers"',
    'Tailscale-User-Login Tailscale-User-Name Tailscale-User-Profile-Pic',
  ],
  [
    'Vouch',
    'github.com/vouch/vouch-proxy',
    'X-Vouch-User X-Vouch-Idp-IdToken X-Vouch-Idp-AccessToken',
  ],
  [
    'oauth2-proxy',
    'oauth2-proxy.github.io, "Overview"',
    'X-Auth-Request-User X-Auth-Request-Email X-Auth-Request-Access-Token X-Forwarded-User X-Forwarded-Groups',
  ],
  ['Cloud Run', 'cloud.google.com, "Service to service"', 'X-Serverless-Authorization'],
  [
    'Google IAP',
    'cloud.google.com, "Getting the user’s identity"',
    'X-Goog-Iap-Jwt-Assertion X-Goog-Authenticated-User-Email X-Goog-Authenticated-User-Id',
  ],
  [
    'Apigee, API Gateway',
    'cloud.google.com, "Authenticating users"',
    'X-Apigateway-Api-Userinfo X-Endpoint-Api-Userinfo',
  ],
  [
    'AWS',
    'docs.aws.amazon.com, "Authenticate users using an ALB"',
    'X-Amzn-Oidc-Data X-Amzn-Oidc-Identity X-Amzn-Oidc-Accesstoken X-Amz-Security-Token X-Amzn-Trace-Id',
  ],
  [
    'Azure',
    'learn.microsoft.com, "Work with user identities"',
    'X-MS-Client-Principal X-MS-Client-Principal-Name X-MS-Token-AAD-Id-Token X-Azure-ClientIP',
  ],
  [
    'Cloudflare',
    'developers.cloudflare.com, "HTTP request headers"',
    'Cf-Access-Jwt-Assertion Cf-Access-Authenticated-User-Email CF-Connecting-IP CF-IPCountry True-Client-IP',
  ],
  [
    'Kong',
    'docs.konghq.com, "OpenID Connect"',
    'X-Consumer-Id X-Consumer-Username X-Consumer-Custom-Id X-Credential-Identifier X-Userinfo X-Id-Token X-Access-Token',
  ],
  [
    'Grafana, Traefik',
    'grafana.com, "Auth proxy"',
    'X-Webauth-User X-Webauth-Email X-Forwarded-Tls-Client-Cert',
  ],
  [
    'others',
    'own',
    'X-Auth-Token X-User-Email X-User-Id X-Username X-Groups X-Csrf-Token X-Xsrf-Token Client-Ip X-Originating-Ip X-Forwarded Wl-Proxy-Client-Ip Incap-Client-Ip X-Akamai-Edgescape X-Client-Assertion',
  ],
  [
    'Fly, Netlify, DigitalOcean, CloudFront',
    'fly.io, "Request headers"; docs.netlify.com; docs.digitalocean.com; docs.aws.amazon.com',
    'Fly-Client-IP X-Nf-Client-Connection-Ip DO-Connecting-IP CloudFront-Viewer-Address CloudFront-Viewer-Country',
  ],
]

t.test('who is signed in, and from where, stays here, whatever is in front', async t => {
  for (const [product, , names] of addedByProxies) {
    const sent = Object.fromEntries(names.split(' ').map(name => [name, 'of a person']))
    const { headers } = targetFor(ctxWith(sent))
    t.same(headers, { 'accept-encoding': 'identity', authorization: 'Bearer sk-1' }, product)
  }
  const assertion = 'eyJhbGciOiJFUzI1NiJ9.eyJlbWFpbCI6ImFAYi5jIn0.c2lnbmF0dXJl'
  const signed = { 'x-in-2031': assertion, 'x-other': `Bearer ${assertion}`, 'x-text': 'eyJ' }
  t.match(Object.keys(targetFor(ctxWith(signed)).headers), ['x-text', 'accept-encoding'])
})

t.test('the operator says what goes and stays beside that', async t => {
  Object.assign(providerHeaders, { pass: ['x-user-id', 'x-acme-*', 'cookie'], keep: ['x-title'] })
  t.teardown(() => Object.assign(providerHeaders, { pass: [], keep: [] }))
  const sent = {
    'x-user-id': '7',
    'x-acme-token': 't',
    'x-title': 'app',
    cookie: 'c',
    'x-app': 'a',
  }
  t.same(Object.keys(targetFor(ctxWith(sent)).headers), [
    'x-user-id',
    'x-acme-token',
    'x-app',
    'accept-encoding',
    'authorization',
  ])
})
