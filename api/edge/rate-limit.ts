import type { Context, Middleware } from 'koa'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/core/errors.ts'
import { hashKey } from '#shared/access/key.ts'
import { rateLimitSubnet } from '#shared/access/rate-limit/subnet.ts'
import {
  createLimiter,
  type Limiter,
  type RateLimitResult,
} from '#shared/access/rate-limit/limiter.ts'
import type { Quota } from '#shared/access/rate-limit/quota.ts'
import type { Log } from '#shared/core/log.ts'
import { createPointStore } from '#shared/access/rate-limit/rate-limit-store.postgres.ts'

export type Quotas = {
  /** Of a Memory Key or an admin credential; at least one. */
  key: readonly Quota[]
  /** Of an address, for requests without a valid key; at least one. */
  address: readonly Quota[]
  /** Requests of one key that a process serves at the same time; 64, when missing. */
  maxConcurrent?: number
}

/**
 * A chat turn makes two or three requests; an upload of ten thousand lines is one. A hundred in ten
 * seconds are six hundred a minute: the second quota counts only where the first is widened.
 */
const defaultQuotas: Quotas = {
  key: [
    { points: 100, seconds: 10 },
    { points: 1_000, seconds: 60 },
  ],
  address: [{ points: 60, seconds: 60 }],
}

/** Model calls last for minutes: without a bound one key could take every connection. */
const defaultMaxConcurrent = 64

/** Keys and addresses that a process remembers: about 300 bytes each. */
const subjectsMax = 10_000

/** What a request carries from the middleware to where its key is found valid. */
type RateLimitState = {
  requestId?: string
  /** Missing when limits are switched off. */
  keyLimit?: Limiter
  /** Those that a process is serving, by key. */
  inFlight?: { counts: Map<string, number>; max: number }
  /** Whether the request has a valid key. */
  isAuthenticated?: boolean
  log?: Log
}

/**
 * Counts requests: by key (`limited`), and by address those that come without a valid key, which are
 * refused before they reach anything once the address has used up its points. A valid key is served
 * from any address: the users of one product share its address, and nobody may lock them out. What
 * never looks at a key (`isOpen`) is not counted.
 */
export function rateLimit(
  { postgres, config, log }: Pick<Backend, 'postgres' | 'config' | 'log'>,
  quotas: Quotas | null = config.rateLimits ? defaultQuotas : null,
): Middleware {
  if (quotas === null) return (_, next) => next()
  const createQuotaLimiter = (name: 'key' | 'address'): Limiter => {
    const onError = (error: unknown) => log.warn({ err: error, limit: name }, 'limits.uncounted')
    const quotasWithStores = quotas[name].map(quota => ({
      ...quota,
      store: createPointStore(postgres.query, { name, quota, onError }),
    }))
    return createLimiter(quotasWithStores, { subjectsMax })
  }
  const keyLimit = createQuotaLimiter('key')
  const addressLimit = createQuotaLimiter('address')
  const inFlight = {
    counts: new Map<string, number>(),
    max: quotas.maxConcurrent ?? defaultMaxConcurrent,
  }
  const addressSubject = ({ req }: Context): string =>
    subjectOfHash(hashKey(config.keyPepper, rateLimitSubnet(req.socket.remoteAddress ?? '')))

  return async (ctx, next) => {
    if (isExempt(ctx)) return next()
    const state = ctx.state as RateLimitState
    Object.assign(state, { keyLimit, inFlight, log } satisfies RateLimitState)
    const refusal = hasCredential(ctx) ? undefined : addressLimit.knownRefusal(addressSubject(ctx))
    if (refusal) applyRateLimit(ctx, refusal, 'address.limited')
    const consumeAddressQuota = async (): Promise<void> =>
      applyRateLimit(ctx, await addressLimit.consume(addressSubject(ctx)), 'address.limited')
    try {
      await next()
    } catch (error) {
      // While the database is away nobody can say whether a key is valid.
      const counts = error instanceof Refusal && error.reason !== 'unavailable'
      if (counts && !state.isAuthenticated) await consumeAddressQuota()
      throw error
    }
    if (!state.isAuthenticated) await consumeAddressQuota()
  }
}

/**
 * Behind a router all clients have one address: whoever uses that up must not make the platform
 * believe that this process is ill, nor close the pages in which people give their key.
 */
const isExempt = ({ method, path }: Context): boolean =>
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

const hasCredential = (ctx: Context): boolean =>
  credentialHeaders.some(name => ctx.get(name) !== '')

const subjectOfHash = (hash: Buffer): string => hash.toString('base64url')

/**
 * Refuses a key that is known here to have used up a limit, before anybody looks it up.
 *
 * @throws Refusal `limited`; nothing when limits are switched off.
 */
export function rejectIfLimited(ctx: Context, keyHash: Buffer): void {
  const state = ctx.state as RateLimitState
  const refusal = state.keyLimit?.knownRefusal(subjectOfHash(keyHash))
  if (!refusal) return
  state.isAuthenticated = true
  applyRateLimit(ctx, refusal, 'key.limited')
}

/**
 * Counts a request of a key that was found valid, once, and tells its client what is left.
 *
 * @throws Refusal `limited`; nothing when limits are switched off.
 */
export async function consumeKeyQuota(
  ctx: Context,
  keyHash: Buffer,
  account: string,
): Promise<void> {
  const state = ctx.state as RateLimitState
  if (!state.keyLimit || state.isAuthenticated) return
  state.isAuthenticated = true
  const subject = subjectOfHash(keyHash)
  applyRateLimit(ctx, await state.keyLimit.consume(subject, account), 'key.limited')
  limitConcurrency(ctx, subject)
}

/** Counts a request as long as its answer is under way. @throws Refusal `limited`. */
function limitConcurrency(ctx: Context, subject: string): void {
  const { inFlight } = ctx.state as RateLimitState
  if (!inFlight || ctx.res.closed) return
  const { counts, max } = inFlight
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
function applyRateLimit(
  ctx: Context,
  result: RateLimitResult,
  event: 'key.limited' | 'address.limited',
): void {
  const { allowed, quota, remaining, resetInMs, refusedCount, owner } = result
  const seconds = Math.max(1, Math.ceil(resetInMs / 1000))
  ctx.set('RateLimit-Limit', String(quota.points))
  ctx.set('RateLimit-Remaining', String(remaining))
  ctx.set('RateLimit-Reset', String(seconds))
  if (allowed) return

  ctx.set('Retry-After', String(seconds))
  if (Number.isInteger(Math.log10(refusedCount))) {
    const { requestId: request, log } = ctx.state as RateLimitState
    const { points: limit, seconds: ofSeconds } = quota
    log?.warn(
      { request, ...(owner && { account: owner }), limit, ofSeconds, refused: refusedCount },
      event,
    )
  }
  throw new Refusal(
    'limited',
    `More than ${quota.points} requests in ${quota.seconds} s`,
    event === 'key.limited'
      ? `Try again in ${seconds} s, as Retry-After says`
      : `Try again in ${seconds} s, or send a valid Memory Key: keys have limits of their own`,
  )
}
