import type { Context } from 'koa'
import { readProxyCall, type ProxyCall, type ProxyEndpoint } from '#api/proxy/proxy-call.ts'
import { authenticateProxyCaller } from '#api/proxy/credentials.ts'
import { createDecodingParser } from '#api/proxy/decoding-parser.ts'
import type { Reply } from '#api/proxy/dialects/dialect.ts'
import {
  createRequestTimer,
  setMemoryHeaders,
  setRecallHeaders,
  type RequestTimer,
} from '#api/proxy/response-headers.ts'
import { replayStoredResponse, storedBytesMax } from '#api/proxy/idempotency.ts'
import {
  disabledRecall,
  recallWithTimeout,
  type RecallResult,
} from '#api/proxy/recall-with-timeout.ts'
import {
  endRelayedResponse,
  clientAbortSignal,
  relay,
  type RelayOutcome,
} from '#api/proxy/relay.ts'
import { recordModelCall } from '#shared/billing/meter.ts'
import type { Backend } from '#shared/backend.ts'
import { requireNothingExpired } from '#shared/access/caller.ts'
import type { CompletionResult, OpenExchange } from '#shared/vault/ingest/open-exchange.ts'
import { prefixedName } from '#shared/models/resolve-model.ts'
import type { UpstreamResponse } from '#shared/models/upstream.ts'

/**
 * Calls a model with memory around it: recalls, forwards, relays, remembers.
 *
 * What the user says is written down before the provider is asked, and stored whatever becomes of the
 * answer. The answer is stored with it before the client sees its end. Memory never breaks a call: only
 * Postgres, which knows who is asking, must be there.
 */
export async function answerWithMemory(
  ctx: Context,
  backend: Backend,
  endpoint: ProxyEndpoint,
): Promise<void> {
  const timer = createRequestTimer()
  try {
    const caller = await authenticateProxyCaller(ctx, backend)
    setMemoryHeaders(ctx, caller)
    const call = await readProxyCall(ctx, backend, caller, endpoint)
    const { idempotentCall } = call
    if (idempotentCall.storedResponse !== undefined) {
      // What was answered may be among what is over.
      requireNothingExpired(caller)
      return replayStoredResponse(ctx, idempotentCall.storedResponse)
    }
    let response: ResponseToStore = 'nothing'
    try {
      response = await runCall(ctx, backend, endpoint, call, timer)
    } finally {
      // Whoever sends the call again is told to wait for a while; nothing worse.
      await idempotentCall.finish(response).catch((error: unknown) => {
        backend.log.warn({ err: error }, 'proxy.answer-not-kept')
      })
    }
    endRelayedResponse(ctx)
  } finally {
    timer.setTimingHeaders(ctx)
  }
}

type ResponseToStore = Parameters<ProxyCall['idempotentCall']['finish']>[0]

/** @returns what is kept of the answer for a request that is sent again. */
async function runCall(
  ctx: Context,
  backend: Backend,
  endpoint: ProxyEndpoint,
  call: ProxyCall,
  timer: RequestTimer,
): Promise<ResponseToStore> {
  const clientSignal = clientAbortSignal(ctx)
  const [recalled, exchange] = await Promise.all([
    recallForCall(backend, call),
    openExchange(backend, call),
  ])
  setRecallHeaders(ctx, recalled)
  let outcome: ReplyOutcome = noReply
  try {
    const answer = await timer.timeProvider(callProvider(backend, call, recalled, clientSignal))
    timer.setTimingHeaders(ctx)
    const { kept, ...replyOutcome } = await relayResponse(ctx, backend, endpoint, call, answer)
    outcome = replyOutcome
    return kept
  } catch (error) {
    if (!clientSignal.aborted) throw error
    return abortAsClientClosed(ctx)
  } finally {
    const { recalledTokens, persisted } = recalled
    await Promise.all([
      closeExchange(backend, call, exchange, { ...outcome, recalledTokens }),
      persisted,
    ])
  }
}

function callProvider(
  { upstream }: Backend,
  { request, model, target }: ProxyCall,
  { context, blockIndex }: RecallResult,
  signal: AbortSignal,
): Promise<UpstreamResponse> {
  const renamed = request.model !== undefined && request.model !== model.name
  const body = request.serialize({
    ...(renamed && { model: model.name }),
    ...(context !== null && { context, place: blockIndex }),
  })
  return upstream.post({ ...target, provider: model.provider, body, signal })
}

/** Hands the answer on. @returns what was heard of it, and what is kept of its bytes. */
async function relayResponse(
  ctx: Context,
  { config }: Backend,
  { dialect }: ProxyEndpoint,
  call: ProxyCall,
  answer: UpstreamResponse,
): Promise<ReplyOutcome & { kept: ResponseToStore }> {
  const { status, headers } = answer
  const contentType = String(headers['content-type'] ?? '')
  const replyParser = createDecodingParser(
    dialect.createReplyParser({ status, contentType }),
    String(headers['content-encoding'] ?? ''),
  )
  const copy = call.idempotentCall.shouldStore ? createResponseCopy(answer) : undefined
  const onBytes = (bytes: Buffer): void => {
    replyParser.feed(bytes)
    copy?.hear(bytes)
  }
  const ending = await relay(ctx, answer, { onBytes, clientTimeoutMs: config.clientTimeoutMs })
  const outcome = toReplyOutcome(call, answer, await replyParser.end(), ending)
  return { ...outcome, kept: copy && ending === 'whole' && status < 300 ? copy.end() : 'nothing' }
}

const recallForCall = (
  backend: Backend,
  { caller, request, memoryAccess, session, space, turnId }: ProxyCall,
): RecallResult | Promise<RecallResult> => {
  if (!memoryAccess.retrieve) return disabledRecall
  const { userTurn, turns } = request
  if (!userTurn || !turnId) return { ...disabledRecall, status: 'none' }
  return recallWithTimeout(backend, caller, { turns, turn: userTurn, turnId, session, space })
}

/** Undefined when nothing of this call may be stored. */
function openExchange(
  { exchanges }: Backend,
  {
    caller,
    request,
    memoryAccess,
    session,
    space,
    model,
    idempotentCall,
    expiresAt,
    turnId,
  }: ProxyCall,
): Promise<OpenExchange> | undefined {
  const newMessages = memoryAccess.store ? request.newMessages : []
  if (newMessages.length === 0 && !memoryAccess.storeReply) return undefined
  return exchanges.open({
    operation: idempotentCall.operation,
    owner: caller,
    session,
    embeddings: space.model,
    model: prefixedName(model),
    said: newMessages,
    expiresAt,
    turn: turnId,
  })
}

type ReplyOutcome = Omit<CompletionResult, 'recalledTokens'>

const noReply: ReplyOutcome = {
  text: null,
  interrupted: true,
  unanswered: true,
  inputTokens: 0,
  outputTokens: 0,
}

/** Nothing of an error is remembered; of an answer that broke off, what was heard. */
function toReplyOutcome(
  { memoryAccess }: ProxyCall,
  { status }: UpstreamResponse,
  { text, complete, failed, inputTokens = 0, outputTokens = 0 }: Reply,
  ending: RelayOutcome,
): ReplyOutcome {
  const answered = status < 400 && !failed && (complete || text !== '')
  return {
    text: answered && memoryAccess.storeReply && text !== '' ? text : null,
    interrupted: ending !== 'whole' || failed || !complete,
    unanswered: !answered,
    inputTokens,
    outputTokens,
  }
}

/** Longest that a client waits for the end of its answer while the database is slow. */
const storeTimeoutMs = 2_000

async function closeExchange(
  backend: Backend,
  { caller, model, session, idempotentCall }: ProxyCall,
  exchange: OpenExchange | undefined,
  outcome: CompletionResult,
): Promise<void> {
  if (exchange) return backend.exchanges.close(exchange, outcome, storeTimeoutMs)
  const { inputTokens, outputTokens, recalledTokens } = outcome
  recordModelCall(backend, caller, {
    id: idempotentCall.operation,
    kind: 'proxy',
    model: prefixedName(model),
    session,
    inputTokens,
    outputTokens,
    recalledTokens,
  })
}

/** Nobody is there any more to be answered. */
function abortAsClientClosed(ctx: Context): 'nothing' {
  ctx.respond = false
  ctx.status = 499
  return 'nothing'
}

/** The bytes of an answer that may be given again. */
function createResponseCopy({ status, headers }: UpstreamResponse) {
  const type = String(headers['content-type'] ?? '')
  const chunks: Buffer[] = []
  let bytes = /event-stream/i.test(type) || headers['content-encoding'] ? Infinity : 0
  return {
    hear(chunk: Buffer): void {
      bytes += chunk.length
      if (bytes <= storedBytesMax) chunks.push(chunk)
      else chunks.length = 0
    },
    end: () =>
      bytes <= storedBytesMax
        ? { status, type, body: Buffer.concat(chunks).toString('base64') }
        : null,
  }
}
