import type { Router } from '@koa/router'
import type { Context } from 'koa'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { readJson } from '#api/edge/body.ts'
import { anyMemoryKey } from '#api/edge/auth.ts'
import { statusOfRefusal } from '#api/edge/errors.ts'
import { readForm, refuseForeignForm } from '#api/edge/forms.ts'
import { parseBearer, readMemoryKey } from '#api/edge/memory-key-auth.ts'
import { IdentityProvider } from '#api/login/identity-provider.ts'
import {
  describeLink,
  endLogin,
  keepLink,
  keepPerson,
  keepState,
  openChoice,
  openLink,
  readChoices,
  takeState,
} from '#api/login/console-login.ts'
import { errorPage, pagePolicy } from '#api/oauth/pages.ts'
import { oauthPaths } from '#api/oauth/provider.ts'
import { Refusal } from '#shared/core/errors.ts'
import { takeSignInGroups } from '#shared/org/admin/directory.ts'

const path = '/console/login'

/** The cookie of a browser that signs in, below the address of what it signs in to. */
export const loginCookie = 'vault_login'

/**
 * The console's sign-in by an OpenID provider, where `OIDC_ISSUER` is set. The browser has a cookie from the first page
 * of the provider to the choice of what to open; then the tab is handed a credential, as if it had been pasted.
 */
export function login(router: Router, backend: ApiBackend): void {
  loginLinks(router, backend)
  const { config, rateLimiter, log } = backend
  const { oidc, publicUrl } = config
  if (oidc === null || publicUrl === null) return
  const provider = new IdentityProvider(oidc, `${publicUrl}${path}/callback`)
  const secure = publicUrl.startsWith('https:')
  const setCookie = (ctx: Context, secret: string, at = path): void => {
    const flags = ['HttpOnly', 'SameSite=Lax', `Path=${at}`, ...(secure ? ['Secure'] : [])]
    const age = secret === '' ? 0 : 600
    ctx.append('Set-Cookie', [`${loginCookie}=${secret}`, `Max-Age=${age}`, ...flags].join('; '))
  }
  const cookieOf = (ctx: Context): string => ctx.cookies.get(loginCookie) ?? ''

  router.get(path, ctx =>
    showPage(ctx, log, async () => {
      const { url, ...state } = await provider.begin()
      const application = new URLSearchParams(ctx.querystring).get('application') ?? ''
      const isOne = /^[\w-]{1,64}$/.test(application)
      setCookie(ctx, await keepState(backend, { ...state, ...(isOne && { application }) }))
      return url
    }),
  )

  // Apple sends a form, without the cookie: the browser is sent on to the same with it.
  router.post(`${path}/callback`, async ctx => {
    ctx.redirect(`${publicUrl}${path}/callback?${(await readForm(ctx)).toString()}`)
    ctx.status = 303
  })

  router.get(`${path}/callback`, ctx =>
    showPage(ctx, log, async () => {
      const state = await takeState(backend, cookieOf(ctx))
      await rateLimiter.consumeLoginQuota(ctx, state.state)
      const { email, groups } = await provider.finish(ctx.querystring, state)
      if (groups !== null) await takeSignInGroups(backend, email, groups)
      const secret = await keepPerson(backend, email)
      const { application } = state
      const place = application === undefined ? path : `${oauthPaths.signIn}/${application}`
      setCookie(ctx, secret, place)
      return application === undefined ? '/console#/login' : place
    }),
  )

  router.get(`${path}/choices`, async ctx => {
    const { email, choices } = await readChoices(backend, cookieOf(ctx))
    await rateLimiter.consumeLoginQuota(ctx, email)
    ctx.body = { email, choices }
  })

  router.post(`${path}/open`, async ctx => {
    refuseForeignForm(ctx, backend.config.publicUrl)
    const { choice } = Object(await readJson(ctx, 'small')) as { choice?: unknown }
    if (typeof choice !== 'string') throw new Refusal('invalid', 'choice is missing')
    const key = await openChoice(backend, { secret: cookieOf(ctx), choice })
    await rateLimiter.consumeLoginQuota(ctx, key)
    ctx.body = { key }
    setCookie(ctx, '')
  })

  router.post(`${path}/end`, async ctx => {
    refuseForeignForm(ctx, backend.config.publicUrl)
    const key = parseBearer(ctx.get('authorization'))
    if (key === undefined) throw new Refusal('unauthenticated', 'There is no credential to end')
    if (await endLogin(backend, key)) await rateLimiter.consumeLoginQuota(ctx, key)
    backend.verifiedKeys.noteChange()
    ctx.status = 204
  })
}

/**
 * Links that open the console with a Memory Key, once each, as `npm start` prints one. The secret stands behind the
 * `#`, which no server is sent.
 */
function loginLinks(router: Router, backend: ApiBackend): void {
  const authenticate = anyMemoryKey()
  router.post(`${path}/links`, async ctx => {
    await authenticate(ctx, backend)
    const { key, mode } = readMemoryKey(ctx)
    const { hours = 1, ...others } = Object(await readJson(ctx, 'small')) as { hours?: unknown }
    if (!isLinkHours(hours) || Object.keys(others).length > 0)
      throw new Refusal('invalid', 'A link takes hours, a number from 1 to 168, and nothing else')
    const secret = await keepLink(backend, mode === 'on' ? key : `${key}:${mode}`, hours)
    ctx.status = 201
    ctx.body = { path: `/console#/open/${secret}` }
  })

  router.post(`${path}/links/open`, async ctx => {
    refuseForeignForm(ctx, backend.config.publicUrl)
    const given = Object(await readJson(ctx, 'small')) as { secret?: unknown; look?: unknown }
    const { secret, look } = given
    if (typeof secret !== 'string') throw new Refusal('invalid', 'secret is missing')
    ctx.body =
      look === true ? await describeLink(backend, secret) : { key: await openLink(backend, secret) }
    await backend.rateLimiter.consumeLoginQuota(ctx, secret)
  })
}

const isLinkHours = (hours: unknown): hours is number =>
  typeof hours === 'number' && hours >= 1 && hours <= 168

/** Sends the browser on to what `find` returns, and shows a refusal as a page. */
async function showPage(
  ctx: Context,
  log: ApiBackend['log'],
  find: () => Promise<string>,
): Promise<void> {
  ctx.set('Content-Security-Policy', pagePolicy())
  ctx.set('Referrer-Policy', 'no-referrer')
  try {
    ctx.redirect(await find())
    ctx.status = 303
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    log.warn({ err: error, request: ctx.state.requestId }, 'login.failed')
    ctx.status = statusOfRefusal(error)
    ctx.type = 'html'
    const { message, hint = 'Go back to the console and sign in again' } = error
    ctx.body = errorPage(`${message}.`, `${hint}.`)
  }
}
