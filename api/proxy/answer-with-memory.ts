import type { Context } from 'koa'
import { readProxyCall, type ProxyCall, type ProxyEndpoint } from '#api/proxy/proxy-call.ts'
import { authenticateProxyCaller } from '#api/proxy/credentials.ts'
import { createDecodingParser } from '#api/proxy/decoding-parser.ts'
import {
  closeExchange,
  noReply,
  openExchange,
  toReplyOutcome,
  type ReplyOutcome,
} from '#api/proxy/exchange.ts'
import {
  createRequestTimer,
  setMemoryHeaders,
  setRecallHeaders,
  type RequestTimer,
} from '#api/proxy/response-headers.ts'
import { replayStoredResponse } from '#api/proxy/idempotency.ts'
import {
  disabledRecall,
  recallWithTimeout,
  type RecallResult,
} from '#api/proxy/recall-with-timeout.ts'
import { endRelayedResponse, clientAbortSignal, relay } from '#api/proxy/relay.ts'
import { ResponseCopy } from '#api/proxy/response-copy.ts'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { requireNothingExpired, type Caller } from '#shared/access/caller.ts'
import type { OpenExchange } from '#shared/vault/ingest/open-exchange.ts'
import type { UpstreamResponse } from '#shared/models/upstream.ts'

/**
 * Calls a model with memory around it, in six steps: authorize, read, recall, forward, relay, record.
 *
 * What the user says is written to Postgres before the provider is called, and is stored whatever comes
 * of the answer. The answer is stored with it before the response to the client ends. A failure of
 * memory never fails a call: only Postgres, which authenticates the caller, must be reachable.
 */
export async function answerWithMemory(
  ctx: Context,
  backend: ApiBackend,
  endpoint: ProxyEndpoint,
): Promise<void> {
  const timer = createRequestTimer()
  try {
    const caller = await authorize(ctx, backend)
    const call = await readProxyCall(ctx, backend, caller, endpoint)
    if (call.idempotentCall.storedResponse !== undefined) return replay(ctx, call)

    const run = { ctx, backend, endpoint, call, timer, clientSignal: clientAbortSignal(ctx) }
    const memory = await recall(run)
    const result = await forward(run, memory)
      .then(answer => relayAnswer(run, answer))
      .catch((error: unknown) => toFailedResult(run, error))
    await record(run, memory, result)
    if ('error' in result) throw result.error
    endRelayedResponse(ctx)
  } finally {
    timer.setTimingHeaders(ctx)
  }
}

/** What the steps after `read` share. */
type CallRun = {
  ctx: Context
  backend: ApiBackend
  endpoint: ProxyEndpoint
  call: ProxyCall
  timer: RequestTimer
  /** Aborts when the client closes the connection before its response has ended. */
  clientSignal: AbortSignal
}

async function authorize(ctx: Context, backend: ApiBackend): Promise<Caller> {
  const caller = await authenticateProxyCaller(ctx, backend)
  setMemoryHeaders(ctx, caller)
  return caller
}

/** @throws Refusal while expired memories wait for removal: the stored response may repeat them. */
function replay(ctx: Context, { caller, idempotentCall }: ProxyCall): void {
  requireNothingExpired(caller)
  replayStoredResponse(ctx, idempotentCall.storedResponse!)
}

/** What a call got from memory, and the exchange to store; undefined when nothing may be stored. */
type CallMemory = { recalled: RecallResult; exchange: OpenExchange | undefined }

/**
 * Recalls, and at the same time writes down what the user says.
 *
 * @throws Refusal `unavailable` when Postgres is unreachable; the Idempotency-Key is then free again.
 */
async function recall({ ctx, backend, call }: CallRun): Promise<CallMemory> {
  try {
    const [recalled, exchange] = await Promise.all([
      recallForCall(backend, call),
      openExchange(backend, call),
    ])
    setRecallHeaders(ctx, recalled)
    return { recalled, exchange }
  } catch (error) {
    await finishIdempotentCall(backend, call, 'nothing')
    throw error
  }
}

const recallForCall = (
  backend: ApiBackend,
  { caller, request, memoryAccess, session, space, turnId }: ProxyCall,
): RecallResult | Promise<RecallResult> => {
  if (!memoryAccess.retrieve) return disabledRecall
  const { userTurn, turns } = request
  if (!userTurn || !turnId) return { ...disabledRecall, status: 'none' }
  return recallWithTimeout(backend, caller, { turns, turn: userTurn, turnId, session, space })
}

/** Sends the request, with its context block, to the provider. Resolves with the response's head. */
async function forward(
  { ctx, backend, call, timer, clientSignal }: CallRun,
  { recalled: { context, blockIndex } }: CallMemory,
): Promise<UpstreamResponse> {
  const { request, model, target } = call
  const renamed = request.model !== undefined && request.model !== model.name
  const body = request.serialize({
    model: renamed ? model.name : undefined,
    context: context ?? undefined,
    blockIndex,
  })
  const { provider } = model
  const answer = await timer.timeProvider(
    backend.upstream.post({ ...target, provider, body, signal: clientSignal }),
  )
  timer.setTimingHeaders(ctx)
  return answer
}

/** How a call ended: what is stored of the reply, and what is kept for the Idempotency-Key. */
type CallResult = {
  reply: ReplyOutcome
  toStore: ResponseToStore
  /** Why there is no response; thrown after the call is recorded. */
  error?: unknown
}

type ResponseToStore = Parameters<ProxyCall['idempotentCall']['finish']>[0]

/** Relays the answer to the client, all but the end of the response, and parses the reply from it. */
async function relayAnswer(
  { ctx, backend, endpoint, call }: CallRun,
  answer: UpstreamResponse,
): Promise<CallResult> {
  const { status, headers } = answer
  const contentType = String(headers['content-type'] ?? '')
  const replyParser = createDecodingParser(
    endpoint.dialect.createReplyParser({ status, contentType }),
    String(headers['content-encoding'] ?? ''),
  )
  const copy = call.idempotentCall.shouldStore ? new ResponseCopy(answer) : undefined
  const onBytes = (bytes: Buffer): void => {
    replyParser.feed(bytes)
    copy?.append(bytes)
  }
  const { clientTimeoutMs } = backend.config
  const relayed = await relay(ctx, answer, { onBytes, clientTimeoutMs })
  const reply = toReplyOutcome(call, answer, await replyParser.end(), relayed)
  const isReplayable = relayed === 'complete' && status < 300
  return { reply, toStore: copy && isReplayable ? copy.toStoredResponse() : 'nothing' }
}

/** An error after the client has closed the connection has no receiver: it ends as status 499. */
function toFailedResult({ ctx, clientSignal }: CallRun, error: unknown): CallResult {
  if (!clientSignal.aborted) return { reply: noReply, toStore: 'nothing', error }
  ctx.respond = false
  ctx.status = 499
  return { reply: noReply, toStore: 'nothing' }
}

async function record(
  { backend, call }: CallRun,
  { recalled, exchange }: CallMemory,
  { reply, toStore }: CallResult,
): Promise<void> {
  const outcome = { ...reply, recalledTokens: recalled.recalledTokens }
  await Promise.all([closeExchange(backend, call, exchange, outcome), recalled.persisted])
  await finishIdempotentCall(backend, call, toStore)
}

/** When this fails, a repeated request is refused until the claim's lock ends; nothing worse. */
const finishIdempotentCall = (
  backend: ApiBackend,
  { idempotentCall }: ProxyCall,
  toStore: ResponseToStore,
): Promise<void> =>
  idempotentCall.finish(toStore).catch((error: unknown) => {
    backend.log.warn({ err: error }, 'proxy.answer-not-kept')
  })
