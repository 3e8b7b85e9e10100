import type { Context } from 'koa'
import { isAnyAllowed } from '#api/proxy/switches.ts'
import { readProxyCall, type ProxyCall, type ProxyEndpoint } from '#api/proxy/proxy-call.ts'
import {
  authenticateProxyCaller,
  isKeyUnverified,
  type ProxyCaller,
} from '#api/proxy/credentials.ts'
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
  noteCoreSession,
  setCacheHeaders,
  setMemoryHeaders,
  setRecallHeaders,
  type RequestTimer,
} from '#api/proxy/response-headers.ts'
import { replayStoredResponse, ResponseCopy } from '#api/proxy/idempotency.ts'
import { saveCallTrace } from '#api/proxy/call-trace.ts'
import { readContextError } from '#api/proxy/context-error.ts'
import { recallForCall, dropBlocks } from '#api/proxy/recall-for-call.ts'
import type { RecallResult } from '#api/proxy/recall-result.ts'
import { clientAbortController, endRelayedResponse, relay } from '#api/proxy/relay.ts'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { requireNothingExpired } from '#shared/access/caller.ts'
import type { OpenExchange } from '#shared/vault/ingest/open-exchanges.ts'
import type { UpstreamResponse } from '#shared/models/upstream.ts'
import { releaseBody } from '#api/edge/body-budget.ts'

/**
 * Calls a model with memory around it, in six steps: authorize, read, recall, forward, relay, record.
 *
 * What the user says is written to Postgres while the provider is called and before the client gets anything of
 * the answer; it is stored whatever comes of that. The answer is stored with it before the response to the client
 * ends. A failure of memory never fails a call: only Postgres, which authenticates the caller, must be reachable.
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

    const clientAbort = clientAbortController(ctx)
    const run = { ctx, backend, endpoint, call, timer, clientAbort }
    const memory = await recall(run)
    const forwarded = forward(run, memory)
    const exchange = await requireOpen(run, memory, forwarded)
    releaseTexts(ctx, call, exchange)
    const result = await forwarded
      .then(answer => relayAnswer(run, answer))
      .catch((error: unknown) => toFailedResult(run, error))
    await record(run, memory, exchange, result)
    await call.unread?.discard()
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
  clientAbort: AbortController
}

async function authorize(ctx: Context, backend: ApiBackend): Promise<ProxyCaller> {
  const authenticated = await authenticateProxyCaller(ctx, backend)
  setMemoryHeaders(ctx, authenticated.caller)
  if (isKeyUnverified(ctx)) ctx.set('X-Memory-Status', 'degraded')
  return authenticated
}

/** @throws Refusal while expired memories wait for removal: the stored response may repeat them. */
function replay(ctx: Context, { caller, idempotentCall }: ProxyCall): void {
  requireNothingExpired(caller)
  replayStoredResponse(ctx, idempotentCall.storedResponse!)
}

/** What a call got from memory, and the exchange that is being opened; undefined when nothing may be stored. */
type CallMemory = {
  recalled: RecallResult
  opening: Promise<OpenExchange> | undefined
  /** Resolves when the trace of the last request is stored; never rejects. */
  traced?: Promise<void>
}

/** Recalls, and begins to write down what the user says. */
async function recall({ ctx, backend, call }: CallRun): Promise<CallMemory> {
  const opening = openExchange(backend, call)
  // Its error is that of `requireOpen`.
  opening?.catch(() => {})
  const recalled = await recallForCall(backend, call).catch(async (error: unknown) => {
    await finishIdempotentCall(backend, call, 'nothing')
    throw error
  })
  setRecallHeaders(ctx, isKeyUnverified(ctx) ? { ...recalled, status: 'degraded' } : recalled)
  const { conversation, session } = call.memoryUse
  if (conversation !== session) noteCoreSession(ctx)
  return { recalled, opening }
}

/**
 * Waits until what the user says is written down. When it cannot be, the provider's work ends.
 *
 * @throws Refusal `unavailable` when Postgres is unreachable; the Idempotency-Key is then free again.
 */
async function requireOpen(
  { backend, call, clientAbort }: CallRun,
  { opening }: CallMemory,
  forwarded: Promise<UpstreamResponse>,
): Promise<OpenExchange | undefined> {
  if (!opening) return undefined
  // An answer that breaks off meanwhile is one for `relay`.
  const answered = forwarded.then(({ body }) => body.on('error', () => {})).catch(() => {})
  try {
    return await opening
  } catch (error) {
    clientAbort.abort()
    void answered.then(body => body?.destroy())
    await finishIdempotentCall(backend, call, 'nothing')
    throw error
  }
}

/**
 * Sends the request, with its context block, to the provider; once more without the block when the
 * provider finds the prompt too long. Resolves with the response's head.
 */
async function forward(run: CallRun, memory: CallMemory): Promise<UpstreamResponse> {
  const first = await postToProvider(run, memory)
  if (memory.recalled.context === null && memory.recalled.earlier.length === 0) return first
  const { isContextTooLong, answer } = await readContextError(first)
  if (!isContextTooLong) return answer
  memory.recalled = dropBlocks(run.backend, run.call, memory.recalled)
  setRecallHeaders(run.ctx, memory.recalled)
  return postToProvider(run, memory)
}

async function postToProvider(run: CallRun, memory: CallMemory): Promise<UpstreamResponse> {
  const { ctx, backend, call, timer, clientAbort } = run
  const { context, blockIndex, earlier, lost } = memory.recalled
  const { request, unread, model, target, memoryUse } = call
  const renamed = request.model !== undefined && request.model !== model.name
  const name = renamed ? model.name : undefined
  const change = { model: name, context: context ?? undefined, blockIndex, earlier }
  // Of a call that may not read memory nothing is looked up: what the request before it had is not known.
  if (memoryUse.retrieves || request.isFirst || memoryUse.aside === 'apart') {
    setCacheHeaders(ctx, lost === undefined, request.reusableBytes(change, lost))
  }
  const body = unread ? unread.body(name) : request.serialize(change)
  if (Buffer.isBuffer(body)) {
    memory.traced = saveCallTrace(run, memory.recalled, { body, change })
  }
  const length = unread?.byteLength(name)
  const headers =
    length === undefined ? target.headers : { ...target.headers, 'content-length': String(length) }
  const { provider } = model
  const answer = await timer.timeProvider(
    backend.upstream.send({ ...target, headers, provider, body, signal: clientAbort.signal }),
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
  const { memoryAccess, retrieves } = call.memoryUse
  const storesFirst = copy !== undefined || isAnyAllowed(memoryAccess)
  // The rest of a body is read, and a trace kept, before the response ends.
  const isOpen = call.unread !== undefined || retrieves
  const end = storesFirst ? 'held' : isOpen ? 'open' : 'ended'
  const relayed = await relay(ctx, answer, { onBytes, clientTimeoutMs, end })
  const reply = toReplyOutcome(call.memoryUse, answer, await replyParser.end(), relayed)
  const isReplayable = relayed === 'complete' && status < 300
  return { reply, toStore: copy && isReplayable ? copy.toStoredResponse() : 'nothing' }
}

/** An error after the client has closed the connection has no receiver: it ends as status 499. */
function toFailedResult({ ctx, clientAbort }: CallRun, error: unknown): CallResult {
  if (!clientAbort.signal.aborted) return { reply: noReply, toStore: 'nothing', error }
  ctx.respond = false
  ctx.status = 499
  return { reply: noReply, toStore: 'nothing' }
}

async function record(
  { backend, call }: CallRun,
  { recalled, traced }: CallMemory,
  exchange: OpenExchange | undefined,
  { reply, toStore }: CallResult,
): Promise<void> {
  const { recalledTokens, tags: inheritedTags } = recalled
  const outcome = { ...reply, recalledTokens, inheritedTags }
  await Promise.all([closeExchange(backend, call, exchange, outcome), recalled.persisted, traced])
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

/** While the provider works only the bytes of a large request are held, and what is stored of it. */
function releaseTexts(
  ctx: Context,
  { request }: ProxyCall,
  exchange: OpenExchange | undefined,
): void {
  request.forgetTexts()
  releaseBody(
    ctx,
    exchange?.userTurns.reduce((sum, { text }) => sum + text.length, 0),
  )
}
