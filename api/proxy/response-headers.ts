import type { Context } from 'koa'
import { presentDebtHeader } from '#api/present/debt.ts'
import type { ProxyRequest } from '#api/proxy/dialects/dialect.ts'
import type { RecallResult } from '#api/proxy/recall-result.ts'
import type { Caller } from '#shared/access/caller.ts'
import type { KeyRow } from '#shared/access/key-row.postgres.ts'
import { totalLeftOut } from '#shared/domain/turn/text.ts'
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
      if (ctx.headerSent) return
      const totalMs = performance.now() - startedAt
      ctx.set('X-Svc-Processing-Ms', formatMs(totalMs - providerMs))
      ctx.set('X-Provider-Response-Ms', formatMs(providerMs))
      ctx.set('X-Total-Ms', formatMs(totalMs))
    },
  }
}

const formatMs = (ms: number): string => String(Math.max(0, Math.round(ms * 10) / 10))

/** By the row of a key, which serves all calls of a second. */
const debtHeaders = new WeakMap<KeyRow, string>()

function debtHeaderOf(keyRow: KeyRow): string {
  const known = debtHeaders.get(keyRow)
  if (known !== undefined) return known
  const header = JSON.stringify(presentDebtHeader(reflectionDebt(keyRow)))
  debtHeaders.set(keyRow, header)
  return header
}

/** Sets the memory headers that every response of a model call has. */
export function setMemoryHeaders(ctx: Context, { keyRow }: Pick<Caller, 'keyRow'>): void {
  ctx.set('X-Memory-Reflection-Debt', debtHeaderOf(keyRow))
  setRecallHeaders(ctx, { status: 'off', recalledTokens: 0, contextTokens: 0 })
}

/**
 * @param isSafe whether memory has changed nothing of what the request before this one had
 * @param reusableBytes how many bytes of the body, from the first, that request had as well
 */
export function setCacheHeaders(ctx: Context, isSafe: boolean, reusableBytes: number): void {
  ctx.set('X-Memory-Cache-Safe', String(isSafe))
  ctx.set('X-Memory-Cache-Bytes', String(reusableBytes))
}

export function setRecallHeaders(
  ctx: Context,
  {
    status,
    recalledTokens,
    contextTokens,
    confidence,
    abstained,
  }: Pick<RecallResult, 'status' | 'recalledTokens' | 'contextTokens' | 'confidence' | 'abstained'>,
): void {
  ctx.set('X-Memory-Status', status)
  ctx.set('X-Memory-Tokens-Retrieved', String(recalledTokens))
  ctx.set('X-Memory-Tokens-Injected', String(contextTokens))
  ctx.remove('X-Memory-Confidence')
  ctx.remove('X-Memory-Abstained')
  if (status === 'ok' && confidence !== undefined)
    ctx.set('X-Memory-Confidence', confidence.toFixed(2))
  if (status === 'none' && abstained) ctx.set('X-Memory-Abstained', abstained)
}

/** Says that the session id of a call names its conversation, and that its memories are in the core. */
export const noteCoreSession = (ctx: Context): void =>
  ctx.set('X-Memory-Status', `${ctx.response.get('X-Memory-Status')}; sessions=core`)

/**
 * Names what known programs have written into the user's turn, which is neither asked with nor stored: a dictionary
 * of RFC 9651 from marks to the number of their pieces, with their length.
 */
export function setLeftOutHeader(ctx: Context, { leftOut }: Pick<ProxyRequest, 'leftOut'>): void {
  if (leftOut.length === 0) return
  const totals = totalLeftOut(leftOut).map(
    ({ mark, pieces, characters }) => `${mark}=${pieces};characters=${characters}`,
  )
  ctx.set('X-Memory-Left-Out', totals.join(', '))
}

/** Names the trace of the call, for `GET /v1/traces/:traceId`. */
export function setTraceHeader(ctx: Context, trace: string): void {
  ctx.set('X-Memory-Trace', trace)
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
      .split(',')
      .map(name => name.trim()),
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
