import { listIgnored } from '#api/edge/request.ts'
import { presentDebtHeader } from '#api/present/debt.ts'
import type { RecallResult } from '#api/proxy/recall.ts'
import type { KeyRow } from '#shared/access/key-row.postgres.ts'
import { totalLeftOut, type LeftOutPiece } from '#shared/domain/turn/text.ts'
import { reflectionDebt } from '#shared/vault/consolidate/debt.ts'

/** What the headers of an answer state: each step of a call fills in what it has found out. */
export type AnswerFacts = {
  /** By `performance.now()`. */
  startedAt: number
  /** How long the provider took until the head of its answer. */
  providerMs: number
  /** Undefined until the key is known: the answer has no memory headers then. */
  keyRow?: KeyRow
  /** Undefined before the recall: the status is then `off`. */
  recall?: Pick<RecallResult, 'status' | 'block' | 'contextTokens'>
  /** The key was not looked up, since Postgres is away: the status is `degraded`. */
  isKeyUnverified?: boolean
  /** The session id names the conversation, and its memories are in the core. */
  isCoreSession?: boolean
  session?: string | null
  /** What known programs have written into the user's turn, which is neither asked with nor stored. */
  leftOut?: readonly LeftOutPiece[]
  /**
   * Whether memory has changed nothing of what the request before this one had, and how many bytes of the body, from
   * the first, that request had as well; undefined where it is not known.
   */
  cache?: { isSafe: boolean; bytes: number }
  /** For `GET /v1/traces/:traceId`. */
  trace?: string
  /** Unknown headers of the request that look like ours. */
  ignored?: ReadonlySet<string>
  /** The tokens were counted without the context block. */
  isCounted?: boolean
}

/** The headers of an answer that are ours. */
export function ownHeaders(facts: AnswerFacts): Record<string, string> {
  const { startedAt, providerMs, keyRow, session, leftOut, cache, trace } = facts
  const totalMs = performance.now() - startedAt
  const headers: Record<string, string> = {
    'X-Svc-Processing-Ms': formatMs(totalMs - providerMs),
    'X-Provider-Response-Ms': formatMs(providerMs),
    'X-Total-Ms': formatMs(totalMs),
  }
  if (facts.ignored?.size) headers['X-Memory-Ignored-Fields'] = listIgnored(facts.ignored)
  if (facts.isCounted) headers['X-Memory-Counted'] = 'false'
  if (!keyRow) return headers
  const { block, contextTokens = 0 } = facts.recall ?? {}
  const { confidence, abstained } = block?.isNew ? block.prepared : {}
  const status = facts.isKeyUnverified ? 'degraded' : (facts.recall?.status ?? 'off')
  headers['X-Memory-Reflection-Debt'] = debtHeaderOf(keyRow)
  headers['X-Memory-Status'] = facts.isCoreSession ? `${status}; sessions=core` : status
  headers['X-Memory-Tokens-Retrieved'] = String(block?.prepared.recalledTokens ?? 0)
  headers['X-Memory-Tokens-Injected'] = String(contextTokens)
  if (status === 'ok' && confidence !== undefined)
    headers['X-Memory-Confidence'] = confidence.toFixed(2)
  if (status === 'none' && abstained) headers['X-Memory-Abstained'] = abstained
  if (session != null) headers['X-Session-ID'] = toAscii(session)
  if (leftOut && leftOut.length > 0) headers['X-Memory-Left-Out'] = toDictionary(leftOut)
  if (cache) {
    headers['X-Memory-Cache-Safe'] = String(cache.isSafe)
    headers['X-Memory-Cache-Bytes'] = String(cache.bytes)
  }
  if (trace !== undefined) headers['X-Memory-Trace'] = trace
  return headers
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

/** A dictionary of RFC 9651 from marks to the number of their pieces, with their length. */
const toDictionary = (leftOut: readonly LeftOutPiece[]): string =>
  totalLeftOut(leftOut)
    .map(({ mark, pieces, characters }) => `${mark}=${pieces};characters=${characters}`)
    .join(', ')

/** Header values are ASCII: other characters are percent-encoded. */
const toAscii = (text: string): string =>
  text.replaceAll(/[^\x20-\x7E]+/g, characters => encodeURIComponent(characters.toWellFormed()))

/**
 * Headers of a provider that are not relayed: those of its connection, and browser policies of its site, which would
 * apply to ours.
 */
const strippedHeaders = new Set(
  (
    'connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding ' +
    'upgrade date set-cookie set-cookie2 alt-svc strict-transport-security content-security-policy clear-site-data ' +
    'nel report-to reporting-endpoints'
  ).split(' '),
)

const ownHeaderPattern =
  /^(?:x-memory-|x-svc-|x-provider-response-ms$|x-total-ms$|x-session-id$|ratelimit-|access-control-)/

/** Whether the client gets a header of a provider's answer, by its name in lower case. */
export const isRelayedHeader = (name: string): boolean =>
  !strippedHeaders.has(name) && !ownHeaderPattern.test(name)

/** The names that a header `Connection` lists: such headers are of the connection (RFC 9110, 7.6.1). */
export const namesIn = (connection: string | string[] | undefined): string[] =>
  connection === undefined || connection === 'keep-alive'
    ? []
    : String(connection)
        .split(',')
        .map(name => name.trim().toLowerCase())
