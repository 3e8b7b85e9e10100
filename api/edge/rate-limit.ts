import type { IncomingMessage } from 'node:http'
import type { Context, Middleware } from 'koa'
import { setBodyTenant } from '#api/edge/body-budget.ts'
import { clientAddress } from '#api/edge/client-address.ts'
import { logRefused } from '#api/edge/log-recall.ts'
import { ticketHeader } from '#api/edge/ticket.ts'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/core/errors.ts'
import { refusal } from '#shared/core/refusal.ts'
import { limitSubjectOf, type Caller } from '#shared/access/caller.ts'
import { hashKey } from '#shared/access/key.ts'
import { toSubject, type Budgets } from '#shared/access/budgets.ts'
import { rateLimitSubnet } from '#shared/access/rate-limit/subnet.ts'
import {
  createLimiter,
  type Limiter,
  type RateLimitResult,
  type Quota,
} from '#shared/access/rate-limit/limiter.ts'
import type { Log } from '#shared/core/log.ts'
import { createPointStore } from '#shared/access/rate-limit/rate-limit-store.postgres.ts'

export type Quotas = {
  /** Quotas of a Memory Key or an admin credential; at least one. */
  key: readonly Quota[]
  /** Quotas of an address, for requests without a valid key; at least one. */
  address: readonly Quota[]
  /** Quotas of an address where people and applications log in. */
  login?: readonly Quota[]
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

/**
 * Where no proxy is trusted, all clients may have one address. What they begin there is bounded by what it takes in the
 * database: 1,200 sign-ins a minute that last for 10 are 180 MB.
 */
const defaultLoginQuotas: readonly Quota[] = [{ points: 1_200, seconds: 60 }]

/** Model calls last for minutes: without a bound one key could take every connection. */
const defaultMaxConcurrent = 64

/** Refusals of a subject are logged at the 1st, 10th, 100th …: a flood of requests writes few lines. */
const isLoggedRefusal = (count: number): boolean => Number.isInteger(Math.log10(count))

/** The rate limits of a process: of keys, and of addresses whose requests have no valid key. */
export class RateLimiter {
  readonly #keyPepper: string
  readonly #log: Log
  /** Undefined when limits are switched off. */
  readonly #limiters: { key: Limiter; address: Limiter; login: Limiter; guess: Limiter } | undefined
  readonly #trustedProxies: number
  readonly #maxConcurrent: number
  /** Requests that are being served, by key. */
  readonly #inFlight = new Map<string, number>()
  /** Requests that the limit of a key or of a login's secret has counted or refused: the address does not count them too. */
  readonly #countedByKey = new WeakSet<IncomingMessage>()
  readonly #budgets: Budgets
  /** Subjects whose budgets have counted a request. */
  readonly #budgeted = new WeakMap<IncomingMessage, Set<string>>()
  /** Requests whose refusal is logged. */
  readonly #logged = new WeakSet<IncomingMessage>()
  readonly #callLog: Pick<Backend, 'callLog' | 'embedders'>
  /** Requests with an unknown admin credential. */
  readonly #guessing = new WeakSet<IncomingMessage>()

  /** @param quotas null switches all limits off */
  constructor(
    {
      postgres,
      config,
      log,
      budgets,
      callLog,
      embedders,
    }: Pick<Backend, 'postgres' | 'config' | 'log' | 'budgets' | 'callLog' | 'embedders'>,
    quotas: Quotas | null = config.rateLimits ? defaultQuotas : null,
  ) {
    this.#keyPepper = config.keyPepper
    this.#log = log
    this.#budgets = budgets
    this.#trustedProxies = config.trustedProxies
    this.#callLog = { callLog, embedders }
    this.#maxConcurrent = quotas?.maxConcurrent ?? defaultMaxConcurrent
    const createQuotaLimiter = (
      name: 'key' | 'address' | 'login' | 'guess',
      ofName: readonly Quota[],
    ): Limiter => {
      const onError = (error: unknown) => log.warn({ err: error, limit: name }, 'limits.uncounted')
      const withStore = (quota: Quota) => {
        return { ...quota, store: createPointStore(postgres.query, { name, quota, onError }) }
      }
      return createLimiter(ofName.map(withStore))
    }
    if (quotas) {
      this.#limiters = {
        key: createQuotaLimiter('key', quotas.key),
        address: createQuotaLimiter('address', quotas.address),
        login: createQuotaLimiter('login', quotas.login ?? defaultLoginQuotas),
        guess: createQuotaLimiter('guess', quotas.address),
      }
    }
  }

  /**
   * Counts requests without a valid key by address, and refuses them before they reach anything once the
   * address has used up its points. A valid key is served from any address: the users of one product
   * share its address, and none may lock the others out. So is a secret of a login. Exempt paths are not counted.
   */
  readonly middleware: Middleware = async (ctx, next) => {
    if (!this.#limiters || isExempt(ctx)) return next()
    const isLogin = loginPaths.test(ctx.path)
    const address = isLogin ? this.#limiters.login : this.#limiters.address
    const mayBeKnown = hasCredential(ctx) || (isLogin && secretPaths.test(ctx.path))
    const usedUp = mayBeKnown ? undefined : address.knownRefusal(this.#addressSubject(ctx))
    if (usedUp) this.#apply(ctx, usedUp, 'address.limited')
    try {
      await next()
    } catch (error) {
      // While the database is away no key can be checked.
      const counts = error instanceof Refusal && error.reason !== 'unavailable'
      if (counts) await this.#consumeAddressQuota(ctx, address)
      throw error
    }
    await this.#consumeAddressQuota(ctx, address)
  }

  async #consumeAddressQuota(ctx: Context, address: Limiter): Promise<void> {
    if (this.#guessing.has(ctx.req)) await this.#limiters?.guess.consume(this.#addressSubject(ctx))
    if (this.#countedByKey.has(ctx.req)) return
    this.#apply(ctx, await address.consume(this.#addressSubject(ctx)), 'address.limited')
  }

  #addressSubject({ req }: Context): string {
    const subnet = rateLimitSubnet(clientAddress(req, this.#trustedProxies))
    return toSubject(hashKey(this.#keyPepper, subnet))
  }

  /** Counts an unknown admin credential against the address, also of a request with a valid Memory Key. */
  noteGuess(ctx: Context): void {
    this.#guessing.add(ctx.req)
  }

  /** Whether the address has sent so many unknown admin credentials that no further one is looked up. */
  hasTooManyGuesses(ctx: Context): boolean {
    return this.#limiters?.guess.knownRefusal(this.#addressSubject(ctx)) !== undefined
  }

  /** @throws Refusal `limited` for an address of which `hasTooManyGuesses` holds. */
  rejectGuesses(ctx: Context): void {
    const usedUp = this.#limiters?.guess.knownRefusal(this.#addressSubject(ctx))
    if (usedUp) this.#apply(ctx, usedUp, 'address.limited')
  }

  /**
   * Refuses a key that this process knows to have used up a limit, before the key is looked up; not a request
   * that has been counted.
   *
   * @throws Refusal `limited`.
   */
  rejectIfLimited(ctx: Context, keyHash: Buffer): void {
    if (this.#countedByKey.has(ctx.req)) return
    const usedUp = this.#limiters?.key.knownRefusal(toSubject(keyHash))
    if (!usedUp) return
    this.#countedByKey.add(ctx.req)
    this.#apply(ctx, usedUp, 'key.limited')
  }

  /**
   * Counts a request of a valid key, once, and sets the headers that state what is left.
   *
   * @throws Refusal `limited`.
   */
  async consumeKeyQuota(ctx: Context, keyHash: Buffer, account: string): Promise<void> {
    setBodyTenant(ctx, account)
    if (!this.#limiters || this.#countedByKey.has(ctx.req)) return
    this.#countedByKey.add(ctx.req)
    const subject = toSubject(keyHash)
    this.#apply(ctx, await this.#limiters.key.consume(subject, account), 'key.limited')
    this.#limitConcurrency(ctx, subject)
  }

  /**
   * Counts a request that has shown a secret of a login against it, once, and not against its address.
   *
   * @param secret names what was found by it: an application, a sign-in under way
   * @throws Refusal `limited`.
   */
  async consumeLoginQuota(ctx: Context, secret: string): Promise<void> {
    if (!this.#limiters || this.#countedByKey.has(ctx.req)) return
    this.#countedByKey.add(ctx.req)
    const subject = toSubject(hashKey(this.#keyPepper, `login ${secret}`))
    this.#apply(ctx, await this.#limiters.key.consume(subject), 'key.limited')
  }

  /**
   * Counts a request of a Memory Key as `consumeKeyQuota`, and once against each of the caller's budgets.
   *
   * @throws Refusal `limited`.
   */
  async consumeCallerQuota(ctx: Context, caller: Caller): Promise<void> {
    const { account, budgets } = caller
    try {
      await this.consumeKeyQuota(ctx, limitSubjectOf(caller), account)
      const counted = this.#budgeted.get(ctx.req) ?? new Set()
      this.#budgeted.set(ctx.req, counted)
      for (const budget of budgets) {
        if (counted.has(budget.subject)) continue
        counted.add(budget.subject)
        const result = await this.#budgets.consume(budget, account)
        if (!result.allowed) this.#refuseBudget(ctx, result)
      }
    } catch (error) {
      if (this.#logged.has(ctx.req)) logRefused(ctx, this.#callLog, caller, error)
      throw error
    }
  }

  #refuseBudget(
    ctx: Context,
    { quota, resetInMs, resetsAt, refusedCount, owner }: RateLimitResult,
  ): never {
    const seconds = Math.max(1, Math.ceil(resetInMs / 1000))
    const isDaily = quota.seconds === 24 * 3600
    const what = quota.postpaid ? (isDaily ? 'tokens' : 'dollars') : 'requests'
    ctx.set('Retry-After', String(seconds))
    if (isLoggedRefusal(refusedCount)) {
      this.#logged.add(ctx.req)
      const { requestId: request } = ctx.state as { requestId?: string }
      const limit = quota.points
      this.#log.warn({ request, account: owner, limit, what, refused: refusedCount }, 'budget.used')
    }
    const until = new Date(Math.ceil(resetsAt / 1000) * 1000).toISOString()
    throw new Refusal(
      'limited',
      `The budget of ${isDaily ? quota.points : quota.points / 1e6} ${what} in ${isDaily ? '24 hours' : '30 days'} is used up`,
      `It begins again at ${until}, as Retry-After says; who has the key of the account can raise it`,
    )
  }

  /** Counts a request until its response is closed. @throws Refusal `limited`. */
  #limitConcurrency(ctx: Context, subject: string): void {
    if (ctx.res.closed) return
    const count = this.#inFlight.get(subject) ?? 0
    if (count >= this.#maxConcurrent) {
      ctx.set('Retry-After', '1')
      throw refusal('limited', 'tooManyConcurrent', { maxConcurrent: this.#maxConcurrent })
    }
    this.#inFlight.set(subject, count + 1)
    ctx.res.once('close', () => {
      const remaining = this.#inFlight.get(subject)! - 1
      if (remaining > 0) this.#inFlight.set(subject, remaining)
      else this.#inFlight.delete(subject)
    })
  }

  /** Sets the headers of a limit. @throws Refusal `limited` when it is used up. */
  #apply(ctx: Context, result: RateLimitResult, event: 'key.limited' | 'address.limited'): void {
    const { allowed, quota, remaining, resetInMs, refusedCount, owner } = result
    const seconds = Math.max(1, Math.ceil(resetInMs / 1000))
    ctx.set('RateLimit-Limit', String(quota.points))
    ctx.set('RateLimit-Remaining', String(remaining))
    ctx.set('RateLimit-Reset', String(seconds))
    if (allowed) return

    ctx.set('Retry-After', String(seconds))
    if (isLoggedRefusal(refusedCount)) {
      this.#logged.add(ctx.req)
      const { requestId: request } = ctx.state as { requestId?: string }
      const { points: limit, seconds: ofSeconds } = quota
      this.#log.warn(
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
}

/**
 * Behind a router all clients have one address: one that uses it up must not make the platform believe
 * that this process is ill, nor close the pages in which people enter their key.
 */
const isExempt = ({ method, path }: Context): boolean =>
  (method === 'GET' || method === 'HEAD') &&
  /^\/(?:health(?:\/live|\/ready)?|console(?!\/login)(?:\/.*)?|docs(?:\/[^/]*)?|guides(?:\/[^/]*)?|llms\.txt|openapi\.json|\.well-known\/.*|oauth\/jwks)\/?$/.test(
    path,
  )

/** Where people and applications log in. */
const loginPaths = /^\/(?:oauth|console\/login|token)(?:\/|$)/

/** Those paths where a request shows a secret that it was given: a token, a code, a link, the cookie of a sign-in. */
const secretPaths =
  /^\/(?:token|oauth\/(?:token|revoke|(?:sign-in|authorize)\/.+)|console\/login\/.+)$/

const credentialHeaders = [
  'authorization',
  'x-api-key',
  'x-memory-key',
  'x-goog-api-key',
  'x-admin-key',
  'x-dashboard-key',
  ticketHeader,
]

const hasCredential = (ctx: Context): boolean =>
  credentialHeaders.some(name => ctx.get(name) !== '')
