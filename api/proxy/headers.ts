import type { Context } from 'koa'
import { presentDebtHeader } from '#api/present/debt.ts'
import type { Recalled } from '#api/proxy/recall-in-time.ts'
import type { Caller } from '#shared/access/caller.ts'
import type { UpstreamAnswer } from '#shared/models/upstream.ts'
import { debtOf } from '#shared/vault/consolidate/debt.ts'

/** Where the time of a call goes. */
export type Clock = {
  /** Waits for the provider; what that takes is the provider's time. */
  waiting<Result>(work: Promise<Result>): Promise<Result>
  /** Tells the client, as far as is known when its headers leave. */
  tell(ctx: Context): void
}

export function createClock(): Clock {
  const begun = performance.now()
  let provider = 0
  return {
    async waiting(work) {
      const asked = performance.now()
      try {
        return await work
      } finally {
        provider = performance.now() - asked
      }
    },
    tell(ctx) {
      const total = performance.now() - begun
      ctx.set('X-Svc-Processing-Ms', shown(total - provider))
      ctx.set('X-Provider-Response-Ms', shown(provider))
      ctx.set('X-Total-Ms', shown(total))
    },
  }
}

const shown = (ms: number): string => String(Math.max(0, Math.round(ms * 10) / 10))

/** What every answer of a model call says of memory, before anything is recalled. */
export function tellCaller(ctx: Context, { row }: Pick<Caller, 'row'>): void {
  ctx.set('X-Memory-Reflection-Debt', JSON.stringify(presentDebtHeader(debtOf(row))))
  ctx.set('X-Memory-Cache-Safe', 'true')
  tellRecalled(ctx, { status: 'off', recalledTokens: 0, contextTokens: 0 })
}

export function tellRecalled(
  ctx: Context,
  {
    status,
    recalledTokens,
    contextTokens,
  }: Pick<Recalled, 'status' | 'recalledTokens' | 'contextTokens'>,
): void {
  ctx.set('X-Memory-Status', status)
  ctx.set('X-Memory-Tokens-Retrieved', String(recalledTokens))
  ctx.set('X-Memory-Tokens-Injected', String(contextTokens))
}

/** Header values are ASCII: everything else is percent-encoded. */
export function tellSession(ctx: Context, session: string | null): void {
  if (session === null) return
  ctx.set(
    'X-Session-ID',
    session.replaceAll(/[^\x20-\x7E]+/g, text => encodeURIComponent(text.toWellFormed())),
  )
}

/**
 * Headers of a provider that do not reach the client: those of its own connection, and what it says to
 * browsers about its own site, which would then hold for ours.
 */
const dropped = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'content-length',
  'date',
  'set-cookie',
  'set-cookie2',
  'alt-svc',
  'strict-transport-security',
  'content-security-policy',
  'clear-site-data',
  'nel',
  'report-to',
  'reporting-endpoints',
])

const own =
  /^(?:x-memory-|x-svc-|x-provider-response-ms$|x-total-ms$|x-session-id$|ratelimit-|access-control-)/

/** Hands a provider's status and headers on. */
export function handOn(ctx: Context, { status, headers }: UpstreamAnswer): void {
  const { connection } = headers
  const hops = new Set(
    String(connection ?? '')
      .toLowerCase()
      .split(/\s*,\s*/),
  )
  ctx.status = status
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || dropped.has(name) || own.test(name) || hops.has(name)) continue
    ctx.set(name, value)
  }
}
