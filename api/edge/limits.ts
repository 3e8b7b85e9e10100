import type { Context, Middleware } from 'koa'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/core/errors.ts'
import { hashOfKey } from '#shared/access/key.ts'
import { householdOf } from '#shared/access/rate-limit/subnet.ts'
import { createLimiter, type Limiter, type Verdict } from '#shared/access/rate-limit/limiter.ts'
import type { Quota } from '#shared/access/rate-limit/quota.ts'
import type { Log } from '#shared/core/log.ts'
import { createPointStore } from '#shared/access/rate-limit/rate-points.postgres.ts'

export type Quotas = {
  /** Of a Memory Key or an admin credential; at least one. */
  key: readonly Quota[]
  /** Of an address, for requests without a valid key; at least one. */
  address: readonly Quota[]
  /** Requests of one key that a process serves at the same time; 64, when missing. */
  together?: number
}

/**
 * A chat turn makes two or three requests; an upload of ten thousand lines is one. A hundred in ten
 * seconds are six hundred a minute: the second quota counts only where the first is widened.
 */
const usual: Quotas = {
  key: [
    { points: 100, seconds: 10 },
    { points: 1_000, seconds: 60 },
  ],
  address: [{ points: 60, seconds: 60 }],
}

/** Model calls last for minutes: without a bound one key could take every connection. */
const usualTogether = 64

/** Keys and addresses that a process remembers: about 300 bytes each. */
const subjectsMax = 10_000

/** What a request carries from the middleware to where its key is found valid. */
type State = {
  requestId?: string
  /** Missing when limits are switched off. */
  keyLimit?: Limiter
  /** Those that a process is serving, by key. */
  underWay?: { counts: Map<string, number>; max: number }
  /** Whether the request has a valid key. */
  known?: boolean
  log?: Log
}

/**
 * Counts requests: by key (`limited`), and by address those that come without a valid key, which are
 * refused before they reach anything once the address has used up its points. A valid key is served
 * from any address: the users of one product share its address, and nobody may lock them out. What
 * never looks at a key (`isOpen`) is not counted.
 */
export function limits(
  { postgres, config, log }: Pick<Backend, 'postgres' | 'config' | 'log'>,
  quotas: Quotas | null = config.rateLimits ? usual : null,
): Middleware {
  if (quotas === null) return (_, next) => next()
  const limiterOf = (name: 'key' | 'address'): Limiter => {
    const onError = (error: unknown) => log.warn({ err: error, limit: name }, 'limits.uncounted')
    const counted = quotas[name].map(quota => ({
      ...quota,
      store: createPointStore(postgres.query, { name, quota, onError }),
    }))
    return createLimiter(counted, { subjectsMax })
  }
  const keyLimit = limiterOf('key')
  const addressLimit = limiterOf('address')
  const underWay = { counts: new Map<string, number>(), max: quotas.together ?? usualTogether }
  const fromOf = ({ req }: Context): string =>
    subjectOf(hashOfKey(config.keyPepper, householdOf(req.socket.remoteAddress ?? '')))

  return async (ctx, next) => {
    if (isOpen(ctx)) return next()
    const state = ctx.state as State
    Object.assign(state, { keyLimit, underWay, log } satisfies State)
    const refusal = presentsCredential(ctx) ? undefined : addressLimit.refusal(fromOf(ctx))
    if (refusal) heed(ctx, refusal, 'address.limited')
    const pay = async (): Promise<void> =>
      heed(ctx, await addressLimit.take(fromOf(ctx)), 'address.limited')
    try {
      await next()
    } catch (error) {
      // While the database is away nobody can say whether a key is valid.
      const counts = error instanceof Refusal && error.reason !== 'unavailable'
      if (counts && !state.known) await pay()
      throw error
    }
    if (!state.known) await pay()
  }
}

/**
 * Behind a router all clients have one address: whoever uses that up must not make the platform
 * believe that this process is ill, nor close the pages in which people give their key.
 */
const isOpen = ({ method, path }: Context): boolean =>
  (method === 'GET' || method === 'HEAD') &&
  /^\/(?:health(?:\/live|\/ready)?|console(?:\/.*)?|docs(?:\/[^/]*)?|openapi\.json)\/?$/.test(path)

const credentialHeaders = [
  'authorization',
  'x-api-key',
  'x-memory-key',
  'x-goog-api-key',
  'x-admin-key',
  'x-dashboard-key',
]

const presentsCredential = (ctx: Context): boolean =>
  credentialHeaders.some(name => ctx.get(name) !== '')

const subjectOf = (hash: Buffer): string => hash.toString('base64url')

/**
 * Refuses a key that is known here to have used up a limit, before anybody looks it up.
 *
 * @throws Refusal `limited`; nothing when limits are switched off.
 */
export function refuseLimited(ctx: Context, keyHash: Buffer): void {
  const state = ctx.state as State
  const refusal = state.keyLimit?.refusal(subjectOf(keyHash))
  if (!refusal) return
  state.known = true
  heed(ctx, refusal, 'key.limited')
}

/**
 * Counts a request of a key that was found valid, once, and tells its client what is left.
 *
 * @throws Refusal `limited`; nothing when limits are switched off.
 */
export async function limited(ctx: Context, keyHash: Buffer, account: string): Promise<void> {
  const state = ctx.state as State
  if (!state.keyLimit || state.known) return
  state.known = true
  const subject = subjectOf(keyHash)
  heed(ctx, await state.keyLimit.take(subject, account), 'key.limited')
  takePlace(ctx, subject)
}

/** Counts a request as long as its answer is under way. @throws Refusal `limited`. */
function takePlace(ctx: Context, subject: string): void {
  const { underWay } = ctx.state as State
  if (!underWay || ctx.res.closed) return
  const { counts, max } = underWay
  const count = counts.get(subject) ?? 0
  if (count >= max) {
    ctx.set('Retry-After', '1')
    throw new Refusal(
      'limited',
      `More than ${max} requests at the same time`,
      'Wait for answers to earlier requests before you send more',
    )
  }
  counts.set(subject, count + 1)
  ctx.res.once('close', () => {
    const left = counts.get(subject)! - 1
    if (left > 0) counts.set(subject, left)
    else counts.delete(subject)
  })
}

/**
 * Tells the client where it stands, and ends the request of one that has used up its limit. That is
 * logged too, but only at its 1st, 10th, 100th … time: a flood of requests is no flood of lines.
 */
function heed(ctx: Context, verdict: Verdict, event: 'key.limited' | 'address.limited'): void {
  const { allowed, quota, left, endsInMs, refused, owner } = verdict
  const seconds = Math.max(1, Math.ceil(endsInMs / 1000))
  ctx.set('RateLimit-Limit', String(quota.points))
  ctx.set('RateLimit-Remaining', String(left))
  ctx.set('RateLimit-Reset', String(seconds))
  if (allowed) return

  ctx.set('Retry-After', String(seconds))
  if (Number.isInteger(Math.log10(refused))) {
    const { requestId: request, log } = ctx.state as State
    const { points: limit, seconds: ofSeconds } = quota
    log?.warn({ request, ...(owner && { account: owner }), limit, ofSeconds, refused }, event)
  }
  throw new Refusal(
    'limited',
    `More than ${quota.points} requests in ${quota.seconds} s`,
    event === 'key.limited'
      ? `Try again in ${seconds} s, as Retry-After says`
      : `Try again in ${seconds} s, or send a valid Memory Key: keys have limits of their own`,
  )
}
