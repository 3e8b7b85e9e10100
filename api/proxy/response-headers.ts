import type { Context } from 'koa'
import { presentDebtHeader } from '#api/present/debt.ts'
import type { RecallResult } from '#api/proxy/recall-with-timeout.ts'
import type { Caller } from '#shared/access/caller.ts'
import type { UpstreamResponse } from '#shared/models/upstream.ts'
import { reflectionDebt } from '#shared/vault/consolidate/debt.ts'

/** Measures the time of a call: the provider's and our own. */
export type RequestTimer = {
  /** Awaits the work and counts its duration as the provider's. */
  timeProvider<Result>(work: Promise<Result>): Promise<Result>
  /** Sets the headers of the times measured so far. */
  setTimingHeaders(ctx: Context): void
}

export function createRequestTimer(): RequestTimer {
  const startedAt = performance.now()
  let providerMs = 0
  return {
    async timeProvider(work) {
      const calledAt = performance.now()
      try {
        return await work
      } finally {
        providerMs = performance.now() - calledAt
      }
    },
    setTimingHeaders(ctx) {
      const totalMs = performance.now() - startedAt
      ctx.set('X-Svc-Processing-Ms', formatMs(totalMs - providerMs))
      ctx.set('X-Provider-Response-Ms', formatMs(providerMs))
      ctx.set('X-Total-Ms', formatMs(totalMs))
    },
  }
}

const formatMs = (ms: number): string => String(Math.max(0, Math.round(ms * 10) / 10))

/** Sets the memory headers that every response of a model call has. */
export function setMemoryHeaders(ctx: Context, { keyRow }: Pick<Caller, 'keyRow'>): void {
  ctx.set('X-Memory-Reflection-Debt', JSON.stringify(presentDebtHeader(reflectionDebt(keyRow))))
  ctx.set('X-Memory-Cache-Safe', 'true')
  setRecallHeaders(ctx, { status: 'off', recalledTokens: 0, contextTokens: 0 })
}

export function setRecallHeaders(
  ctx: Context,
  {
    status,
    recalledTokens,
    contextTokens,
  }: Pick<RecallResult, 'status' | 'recalledTokens' | 'contextTokens'>,
): void {
  ctx.set('X-Memory-Status', status)
  ctx.set('X-Memory-Tokens-Retrieved', String(recalledTokens))
  ctx.set('X-Memory-Tokens-Injected', String(contextTokens))
}

/** Header values are ASCII: other characters are percent-encoded. */
export function setSessionHeader(ctx: Context, session: string | null): void {
  if (session === null) return
  ctx.set(
    'X-Session-ID',
    session.replaceAll(/[^\x20-\x7E]+/g, text => encodeURIComponent(text.toWellFormed())),
  )
}

/**
 * Headers of a provider that are not relayed: those of its connection, and browser policies of its site,
 * which would apply to ours.
 */
const strippedHeaders = new Set([
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

const ownHeaderPattern =
  /^(?:x-memory-|x-svc-|x-provider-response-ms$|x-total-ms$|x-session-id$|ratelimit-|access-control-)/

/** Copies a provider's status and headers to the response. */
export function copyUpstreamHeaders(ctx: Context, { status, headers }: UpstreamResponse): void {
  const { connection } = headers
  const connectionHeaders = new Set(
    String(connection ?? '')
      .toLowerCase()
      .split(/\s*,\s*/),
  )
  ctx.status = status
  for (const [name, value] of Object.entries(headers)) {
    if (
      value === undefined ||
      strippedHeaders.has(name) ||
      ownHeaderPattern.test(name) ||
      connectionHeaders.has(name)
    )
      continue
    ctx.set(name, value)
  }
}
