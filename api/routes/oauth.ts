import type { Router, RouterContext } from '@koa/router'
import type { Context } from 'koa'
import type { Provider } from 'oidc-provider'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { readForm, refuseForeignForm } from '#api/edge/forms.ts'
import { statusOfRefusal } from '#api/edge/errors.ts'
import { createOAuthProvider, oauthPaths, readResource } from '#api/oauth/provider.ts'
import { errorPage, pagePolicy, signInPage } from '#api/oauth/pages.ts'
import { findKeyOfChoice, forgetPerson, readVaultChoices } from '#api/login/console-login.ts'
import {
  connectApplication,
  readConsentRequest,
  type ConsentRequest,
  type Consent,
} from '#api/oauth/sign-in.ts'
import { loginCookie } from '#api/routes/login.ts'
import { applicationScopes } from '#shared/access/applications.postgres.ts'
import { Refusal } from '#shared/core/errors.ts'

/** Longest body of a request to the provider's endpoints, in bytes: metadata of a client, a form with a code. */
const bodyBytesMax = 16 * 1024

/** The login of `/mcp` (OAuth 2.1), where `PUBLIC_URL` is set. */
export function oauth(router: Router, backend: ApiBackend): void {
  const { publicUrl } = backend.config
  if (publicUrl === null) return
  // 20 MB that a process without logins never needs.
  let opened: Promise<{ provider: Provider; serve: ReturnType<Provider['callback']> }> | undefined
  const open = () =>
    (opened ??= createOAuthProvider(backend, publicUrl).then(provider => ({
      provider,
      serve: provider.callback(),
    })))

  const { authorization, token, registration, revocation, jwks, signIn } = oauthPaths
  const serve = async (ctx: Context): Promise<void> => {
    requireSmallBody(ctx)
    asReachedPublicly(ctx.req, publicUrl)
    await handOver(ctx, (await open()).serve)
  }
  router.register(['/.well-known/oauth-authorization-server', jwks], ['GET', 'OPTIONS'], serve)
  router.register([token, revocation, registration], ['POST', 'OPTIONS'], serve)
  // The client for Python keeps tokens, but not where they come from: once started again it refreshes here.
  router.register('/token', ['POST', 'OPTIONS'], ctx => {
    ctx.req.url = token
    return serve(ctx)
  })
  router.get([authorization, `${authorization}/:uid`], async ctx => {
    if (ctx.path === authorization) readAuthorization(ctx, publicUrl)
    leaveOutSession(ctx)
    await serve(ctx)
  })

  /** Who has logged in for this sign-in, where people can. */
  const personOf = async (ctx: Context, { uid }: ConsentRequest) => {
    const { oidc } = backend.config
    if (oidc === null) return {}
    const person = await readVaultChoices(backend, ctx.cookies.get(loginCookie) ?? '')
    return { login: { uid, name: oidc.name }, person }
  }

  router.get(`${signIn}/:uid`, ctx =>
    showPage(ctx, async () => {
      asReachedPublicly(ctx.req, publicUrl)
      const { provider } = await open()
      const asking = await readConsentRequest(ctx, provider)
      await backend.rateLimiter.consumeLoginQuota(ctx, asking.uid)
      ctx.body = signInPage({ ...asking, ...(await personOf(ctx, asking)) })
      return asking
    }),
  )

  router.post(`${signIn}/:uid`, ctx =>
    showPage(ctx, async () => {
      refuseForeignForm(ctx, publicUrl)
      requireSmallBody(ctx)
      asReachedPublicly(ctx.req, publicUrl)
      const { provider } = await open()
      const asking = await readConsentRequest(ctx, provider)
      await backend.rateLimiter.consumeLoginQuota(ctx, asking.uid)
      const form = await readForm(ctx)
      const finish = (result: Parameters<Provider['interactionResult']>[2]) =>
        provider.interactionResult(ctx.req, ctx.res, result, { mergeWithLastSubmission: false })
      if (form.get('decision') !== 'allow') {
        redirect(ctx, await finish({ error: 'access_denied' }))
        return asking
      }
      const choice = form.get('choice')
      const secret = ctx.cookies.get(loginCookie) ?? ''
      const consent: Consent = {
        key: (form.get('key') ?? '').trim(),
        user: (form.get('user') ?? '').trim(),
        scopes: form.getAll('scope'),
      }
      try {
        if (choice !== null) consent.chosen = await findKeyOfChoice(backend, { secret, choice })
        const { application, grantId } = await connectApplication(ctx, backend, {
          provider,
          publicUrl,
          asking,
          consent,
        })
        if (choice !== null) await forgetPerson(backend, secret)
        const login = { accountId: application, remember: false }
        redirect(ctx, await finish({ login, consent: { grantId } }))
      } catch (error) {
        if (!(error instanceof Refusal)) throw error
        ctx.status = statusOfRefusal(error)
        const chosen = applicationScopes.filter(scope => consent.scopes.includes(scope))
        const view = { chosen, user: consent.user, fault: textOf(error) }
        ctx.body = signInPage({ ...asking, ...view, ...(await personOf(ctx, asking)) })
      }
      return asking
    }),
  )
}

/** Sends what `respond` has set as a page: a refusal, too. */
async function showPage(
  ctx: RouterContext,
  respond: () => Promise<Pick<ConsentRequest, 'redirectUri'>>,
): Promise<void> {
  ctx.set('Content-Security-Policy', pagePolicy())
  ctx.set('X-Frame-Options', 'DENY')
  ctx.set('Referrer-Policy', 'same-origin')
  ctx.set('Cross-Origin-Opener-Policy', 'same-origin')
  try {
    const { redirectUri } = await respond()
    ctx.set('Content-Security-Policy', pagePolicy([formTarget(redirectUri)]))
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    ctx.status = statusOfRefusal(error)
    ctx.body = errorPage(textOf(error))
  }
  ctx.type = 'html'
}

const textOf = ({ message, hint }: Refusal): string =>
  hint === undefined ? `${message}.` : `${message}. ${hint}.`

/** Where the form leads in the end, as a source of Content-Security-Policy, which has no form for IPv6 addresses. */
function formTarget(redirectUri: string): string {
  const { protocol, origin, hostname } = new URL(redirectUri)
  return /^https?:$/.test(protocol) && !hostname.startsWith('[') ? origin : protocol
}

function redirect(ctx: Context, url: string): void {
  ctx.redirect(url)
  ctx.status = 303
}

/** @throws Refusal `too-large`. The provider reads 56 KiB at most of a body of unknown length. */
function requireSmallBody(ctx: Context): void {
  if (ctx.method !== 'POST' || (ctx.request.length ?? 0) <= bodyBytesMax) return
  ctx.req.resume()
  throw new Refusal('too-large', 'The body is larger than this endpoint takes', 'It takes 16 KiB')
}

/** Parameters of OpenID, of which no token is issued here. */
const openIdParameters = ['nonce', 'claims', 'acr_values', 'max_age', 'id_token_hint']

/**
 * Reads what clients ask for: scopes that are not ours are ignored, and who names none of ours asks for all, since the
 * person chooses (RFC 6749, section 3.3). Parameters of OpenID are ignored (section 3.1).
 */
function readAuthorization(ctx: Context, publicUrl: string): void {
  const query = new URLSearchParams(ctx.querystring)
  const asked = query
    .getAll('scope')
    .join(' ')
    .split(/[\s,]+/)
  const scopes = applicationScopes.filter(scope => asked.includes(scope))
  query.set('scope', (scopes.length > 0 ? scopes : applicationScopes).join(' '))
  for (const name of openIdParameters) query.delete(name)
  if (query.get('prompt') !== 'none') query.delete('prompt')
  const resources = new Set(query.getAll('resource').map(one => readResource(publicUrl, one)))
  query.delete('resource')
  for (const resource of resources) if (resource !== '') query.append('resource', resource)
  ctx.req.url = `${ctx.path}?${query.toString()}`
}

/** No session is kept, so that no sign-in lets a later request in: its cookie is neither read nor set. */
function leaveOutSession({ req, res }: Context): void {
  const isSession = (cookie: string) => /^\s*_session(?:\.sig)?=/.test(cookie)
  const { cookie } = req.headers
  if (cookie)
    req.headers.cookie = cookie
      .split(';')
      .filter(one => !isSession(one))
      .join(';')
  const setHeader = res.setHeader.bind(res)
  res.setHeader = (name, value) =>
    name.toLowerCase() === 'set-cookie' && Array.isArray(value)
      ? setHeader(
          name,
          value.filter(one => !isSession(one)),
        )
      : setHeader(name, value)
}

/**
 * Lets the provider see the address that is configured: it makes addresses and secure cookies of `Host` and of what
 * a router says, and each of these could be another's.
 */
function asReachedPublicly({ headers }: Pick<Context, 'req'>['req'], publicUrl: string): void {
  const { protocol, host } = new URL(publicUrl)
  delete headers['x-forwarded-host']
  headers.host = host
  headers['x-forwarded-proto'] = protocol.slice(0, -1)
}

/** Lets the provider answer. */
async function handOver(ctx: Context, serve: ReturnType<Provider['callback']>): Promise<void> {
  ctx.set('Content-Security-Policy', pagePolicy())
  ctx.set('X-Frame-Options', 'DENY')
  ctx.respond = false
  await serve(ctx.req, ctx.res)
}
