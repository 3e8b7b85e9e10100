import type { Context } from 'koa'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { blockTokens, recalls } from '#shared/core/metrics.ts'
import { saveCallTrace } from '#api/proxy/call-trace.ts'
import { readContextError } from '#api/proxy/context-error.ts'
import { authenticateProxyCaller } from '#api/proxy/credentials.ts'
import { createDecodingParser } from '#api/proxy/decoding-parser.ts'
import {
  closeExchange,
  openExchange,
  toExchangeResult,
  type RelayedReply,
} from '#api/proxy/exchange.ts'
import { ResponseCopy, type StoredResponse } from '#api/proxy/idempotency.ts'
import { readProxyCall, type ProxyCall, type ProxyEndpoint } from '#api/proxy/proxy-call.ts'
import { dropBlocks, recallForCall, type RecallResult } from '#api/proxy/recall.ts'
import { ClientAnswer } from '#api/proxy/relay.ts'
import { isAnyAllowed } from '#api/proxy/switches.ts'
import { logRefused } from '#api/edge/log-recall.ts'
import { statusOfRefusal } from '#api/edge/errors.ts'
import { requireNothingExpired, type Caller } from '#shared/access/caller.ts'
import { maskKeys } from '#shared/access/key.ts'
import { Refusal } from '#shared/core/errors.ts'
import { providerWords } from '#shared/models/provider-words.ts'
import { keepQuestion } from '#shared/vault/read/traces/kept-question.ts'
import { answerNotKept } from '#shared/core/refusals.ts'
import type { UpstreamResponse } from '#shared/models/upstream.ts'
import type { OpenExchange } from '#shared/vault/ingest/exchange.ts'
import type { CallOutcome } from '#shared/vault/read/traces/call-trace.ts'

/**
 * Calls a model with memory around it, in six steps: authorize, read, recall, forward, relay, record. The first two
 * read the HTTP request; the others get what was read.
 *
 * What the user says is written to Postgres while the provider is called and before the client gets anything of the
 * answer; it is stored whatever comes of that. The answer is stored with it before the response to the client ends. A
 * failure of memory never fails a call: only Postgres, which authenticates the caller, must be reachable.
 */
export async function answerWithMemory(
  ctx: Context,
  backend: ApiBackend,
  endpoint: ProxyEndpoint,
): Promise<void> {
  const answer = new ClientAnswer(ctx)
  const { facts } = answer
  let caller: Caller | undefined
  try {
    const authorized = await authenticateProxyCaller(ctx, backend)
    caller = authorized.caller
    facts.keyRow = authorized.caller.keyRow
    facts.isKeyUnverified = authorized.isUnverified
    const call = await readProxyCall(ctx, backend, authorized, endpoint, facts)
    caller = undefined
    const { storedResponse } = call.idempotentCall
    if (storedResponse !== undefined) return replay(answer, call.caller, storedResponse)

    const run = { backend, endpoint, call, answer }
    const memory = await recall(run)
    const forwarded = forward(run, memory)
    const exchange = await requireOpen(run, memory, forwarded)
    releaseTexts(call, exchange)
    const result = await forwarded
      .then(upstream => relayAnswer(run, upstream))
      .catch((error: unknown) => toFailedResult(run, error))
    await record(run, memory, exchange, result)
    await call.unread?.discard()
    if ('error' in result) throw result.error
    answer.end()
  } catch (error) {
    // A call that has been read has a trace of its own.
    if (caller) {
      logRefused(ctx, backend, caller, error)
      // A fault of the request says nothing of memory.
      if (error instanceof Refusal && error.reason === 'invalid') delete facts.keyRow
    }
    throw error
  } finally {
    answer.writeHead()
  }
}

/** What the steps after `read` share. */
type CallRun = {
  backend: ApiBackend
  endpoint: ProxyEndpoint
  call: ProxyCall
  answer: ClientAnswer
}

/**
 * Replays the response of the first request.
 *
 * @throws Refusal `unavailable` while expired memories wait for removal: the response may repeat them; `conflict` when
 *   it was a stream or too long to store.
 */
function replay(answer: ClientAnswer, caller: Caller, stored: StoredResponse): void {
  requireNothingExpired(caller)
  if (stored) return answer.replay(stored)
  throw answerNotKept(
    'Streams and answers over 1 MiB are not kept; send a new key to ask the model again',
  )
}

/** What a call got from memory, and the exchange that is being opened; undefined when nothing may be stored. */
type CallMemory = {
  recalled: RecallResult
  opening: Promise<OpenExchange> | undefined
  /** Resolves when the trace of the last request is stored; never rejects. */
  traced?: Promise<void> | undefined
  /** Milliseconds that the recall took. */
  recallMs: number
  /** When the last request was sent to the provider, by `performance.now()`. */
  sentAt?: number
}

/** Recalls, and begins to write down what the user says. */
async function recall({ backend, call, answer: { facts } }: CallRun): Promise<CallMemory> {
  const opening = openExchange(backend, call)
  // Its error is that of `requireOpen`.
  opening?.catch(() => {})
  const { caller, request, memoryUse } = call
  const begunAt = performance.now()
  const recalled = await recallForCall(backend, caller, request, memoryUse).catch(
    async (error: unknown) => {
      await finishIdempotentCall(backend, call, 'nothing')
      throw error
    },
  )
  facts.recall = recalled
  recalls.inc({ way: 'proxy', status: recalled.status })
  if (recalled.block?.context != null) blockTokens.observe({ way: 'proxy' }, recalled.contextTokens)
  facts.isCoreSession = memoryUse.conversation !== memoryUse.session
  return { recalled, opening, recallMs: performance.now() - begunAt }
}

/**
 * Waits until what the user says is written down. When it cannot be, the provider's work ends.
 *
 * @throws Refusal `unavailable` when Postgres is unreachable; the Idempotency-Key is then free again.
 */
async function requireOpen(
  { backend, call, answer }: CallRun,
  { opening }: CallMemory,
  forwarded: Promise<UpstreamResponse>,
): Promise<OpenExchange | undefined> {
  if (!opening) return undefined
  // An answer that breaks off meanwhile is one for `relay`.
  const answered = forwarded.then(({ body }) => body.on('error', () => {})).catch(() => {})
  try {
    return await opening
  } catch (error) {
    answer.abort()
    void answered.then(body => body?.destroy())
    await finishIdempotentCall(backend, call, 'nothing')
    throw error
  }
}

/**
 * Sends the request, with its context block, to the provider; once more without the block when the provider finds the
 * prompt too long. Resolves with the response's head.
 */
async function forward(run: CallRun, memory: CallMemory): Promise<UpstreamResponse> {
  const first = await postToProvider(run, memory)
  const { block, earlier } = memory.recalled
  if (block?.context == null && earlier.length === 0) return first
  const { isContextTooLong, answer } = await readContextError(first)
  if (!isContextTooLong) return answer
  const { caller, request, memoryUse } = run.call
  memory.recalled = dropBlocks(run.backend, caller, request, memoryUse, memory.recalled)
  run.answer.facts.recall = memory.recalled
  return postToProvider(run, memory)
}

async function postToProvider(run: CallRun, memory: CallMemory): Promise<UpstreamResponse> {
  const { backend, call, answer } = run
  const { block, earlier, lost } = memory.recalled
  const { request, unread, model, target, memoryUse } = call
  const name = request.model === undefined || request.model === model.name ? undefined : model.name
  const { context, blockIndex } = block ?? {}
  const change = { model: name, context: context ?? undefined, blockIndex, earlier }
  // A call that may not read memory looks nothing up, so the blocks of the request before it are unknown.
  if (!unread && (memoryUse.retrieves || request.isFirst || memoryUse.aside === 'apart')) {
    answer.facts.cache = { isSafe: lost === undefined, bytes: request.reusableBytes(change, lost) }
  }
  const body = unread ? unread.bytes(name) : request.serialize(change)
  if (Buffer.isBuffer(body)) {
    memory.traced = saveCallTrace(run, memory.recalled, { body, change })
  }
  const length = unread?.byteLength(name)
  const headers =
    length === undefined ? target.headers : { ...target.headers, 'content-length': String(length) }
  const { provider } = model
  memory.sentAt = performance.now()
  return answer.timeProvider(
    backend.upstream.send({ ...target, headers, provider, body, signal: answer.signal }),
  )
}

/** How a call ended: what came of the provider's answer, and what is kept of it for the Idempotency-Key. */
type CallResult = {
  answered?: RelayedReply
  toStore: StoredResponse | 'nothing'
  /** Why there is no response; thrown after the call is recorded. */
  error?: unknown
  /** The provider's words where it refused. */
  words?: string
}

/** Bytes of a refusal that are read for its words. */
const refusalBytesMax = 8_192

/** Relays the answer to the client, all but the end of the response, and parses the reply from it. */
async function relayAnswer(
  { backend, endpoint, call, answer }: CallRun,
  upstream: UpstreamResponse,
): Promise<CallResult> {
  const { status, headers } = upstream
  const contentType = String(headers['content-type'] ?? '')
  const replyParser = createDecodingParser(
    endpoint.dialect.createReplyParser({ status, contentType }),
    String(headers['content-encoding'] ?? ''),
  )
  const copy = call.idempotentCall.shouldStore ? new ResponseCopy(upstream) : undefined
  let refusal = ''
  const onBytes = (bytes: Buffer): void => {
    replyParser.feed(bytes)
    copy?.append(bytes)
    if (status >= 400 && refusal.length < refusalBytesMax)
      refusal += bytes.toString('utf8', 0, refusalBytesMax)
  }
  const { clientTimeoutMs } = backend.config
  const { memoryAccess, retrieves } = call.memoryUse
  const storesFirst = copy !== undefined || isAnyAllowed(memoryAccess)
  // The rest of a body is read, and a trace kept, before the response ends.
  const isOpen = call.unread !== undefined || retrieves
  const end = storesFirst ? 'held' : isOpen ? 'open' : 'ended'
  const relayed = await answer.relay(upstream, { onBytes, clientTimeoutMs, end })
  const reply = await replyParser.end()
  const isReplayable = relayed === 'complete' && status < 300
  const toStore = copy && isReplayable ? copy.toStoredResponse() : 'nothing'
  const words = headers['content-encoding'] === undefined ? providerWords(refusal, [], []) : ''
  return { answered: { status, reply, relayed }, toStore, words }
}

/** An error after the client has closed the connection has no receiver. */
function toFailedResult({ answer }: CallRun, error: unknown): CallResult {
  if (!answer.signal.aborted) return { toStore: 'nothing', error }
  answer.abandon()
  return { toStore: 'nothing' }
}

async function record(
  { backend, call, answer: { facts } }: CallRun,
  { recalled, traced, recallMs, sentAt }: CallMemory,
  exchange: OpenExchange | undefined,
  { answered, toStore, error, words }: CallResult,
): Promise<void> {
  const endedAt = performance.now()
  const result = toExchangeResult(call.memoryUse, recalled, answered)
  await Promise.all([closeExchange(backend, call, exchange, result), recalled.persisted, traced])
  if (facts.trace !== undefined) {
    const { mode } = call.caller.keyRow.traces
    const repeated = mode === 'texts' ? exchange?.repeated : undefined
    backend.callLog.end({
      id: facts.trace,
      vault: call.caller.scope.vault,
      // It was redacted before it was stored.
      question:
        repeated === undefined
          ? undefined
          : await keepQuestion(null, { role: 'user', content: repeated }),
      outcome: {
        recall: Math.round(recallMs),
        provider: sentAt && Math.round(endedAt - sentAt),
        total: Math.round(performance.now() - facts.startedAt),
        input: answered?.reply.inputTokens,
        cached: answered?.reply.cachedTokens,
        output: answered?.reply.outputTokens,
        ...failureOf(call.model.provider, answered, words, error),
      },
    })
  }
  await finishIdempotentCall(backend, call, toStore)
}

/** The status of a call, and why it has no answer. */
function failureOf(
  from: string,
  answered: RelayedReply | undefined,
  words: string | undefined,
  error: unknown,
): Pick<CallOutcome, 'status' | 'error'> {
  if (answered) {
    const { status, reply } = answered
    if (status >= 400) return { status, error: { from, words: maskKeys(words ?? '') } }
    return { status, ...(reply.failed && { error: { from, words: 'The answer broke off.' } }) }
  }
  if (!(error instanceof Refusal)) return {}
  return { status: statusOfRefusal(error), error: { from, words: maskKeys(error.message) } }
}

/** When this fails, a repeated request is refused until the claim's lock ends; nothing worse. */
const finishIdempotentCall = (
  backend: ApiBackend,
  { idempotentCall }: ProxyCall,
  toStore: StoredResponse | 'nothing',
): Promise<void> =>
  idempotentCall.finish(toStore).catch((error: unknown) => {
    backend.log.warn({ err: error }, 'proxy.answer-not-kept')
  })

/** While the provider works only the bytes of a large request are held, and what is stored of it. */
function releaseTexts(call: ProxyCall, exchange: OpenExchange | undefined): void {
  call.request.forgetTexts()
  call.releaseBody(exchange?.userTurns.reduce((sum, { text }) => sum + text.length, 0))
}
