import type { Context } from 'koa'
import { readCall, type Call, type Door } from '#api/proxy/call.ts'
import { callerOfCall } from '#api/proxy/credentials.ts'
import { decompressing } from '#api/proxy/decompressing.ts'
import type { Reply } from '#api/proxy/dialects/dialect.ts'
import { createClock, tellCaller, tellRecalled, type Clock } from '#api/proxy/headers.ts'
import { answerAgain, keptBytesMax } from '#api/proxy/once.ts'
import { notAsked, recallInTime, type Recalled } from '#api/proxy/recall-in-time.ts'
import { endRelayed, hangUp, relay, type Ending } from '#api/proxy/relay.ts'
import { recordCall } from '#shared/billing/meter.ts'
import type { Backend } from '#shared/backend.ts'
import { requireNothingOver } from '#shared/access/caller.ts'
import type { Heard, OpenExchange } from '#shared/vault/ingest/open-exchange.ts'
import { prefixed } from '#shared/models/resolve-model.ts'
import type { UpstreamAnswer } from '#shared/models/upstream.ts'

/**
 * Calls a model with memory around it: recalls, forwards, relays, remembers.
 *
 * What the user says is written down before the provider is asked, and stored whatever becomes of the
 * answer. The answer is stored with it before the client sees its end. Memory never breaks a call: only
 * Postgres, which knows who is asking, must be there.
 */
export async function answerWithMemory(ctx: Context, backend: Backend, door: Door): Promise<void> {
  const clock = createClock()
  try {
    const caller = await callerOfCall(ctx, backend)
    tellCaller(ctx, caller)
    const call = await readCall(ctx, backend, caller, door)
    const { once } = call
    if (once.answered !== undefined) {
      // What was answered may be among what is over.
      requireNothingOver(caller)
      return answerAgain(ctx, once.answered)
    }
    let kept: Kept = 'nothing'
    try {
      kept = await converse(ctx, backend, door, call, clock)
    } finally {
      // Whoever sends the call again is told to wait for a while; nothing worse.
      await once.end(kept).catch((error: unknown) => {
        backend.log.warn({ err: error }, 'proxy.answer-not-kept')
      })
    }
    endRelayed(ctx)
  } finally {
    clock.tell(ctx)
  }
}

type Kept = Parameters<Call['once']['end']>[0]

/** @returns what is kept of the answer for a request that is sent again. */
async function converse(
  ctx: Context,
  backend: Backend,
  door: Door,
  call: Call,
  clock: Clock,
): Promise<Kept> {
  const left = hangUp(ctx)
  const [recalled, open] = await Promise.all([recalledFor(backend, call), openedFor(backend, call)])
  tellRecalled(ctx, recalled)
  let heard: Said = unheard
  try {
    const answer = await clock.waiting(asked(backend, call, recalled, left))
    clock.tell(ctx)
    const { kept, ...said } = await relayed(ctx, backend, door, call, answer)
    heard = said
    return kept
  } catch (error) {
    if (!left.aborted) throw error
    return leave(ctx)
  } finally {
    const { recalledTokens, kept } = recalled
    await Promise.all([remember(backend, call, open, { ...heard, recalledTokens }), kept])
  }
}

function asked(
  { upstream }: Backend,
  { request, model, target }: Call,
  { context, place }: Recalled,
  signal: AbortSignal,
): Promise<UpstreamAnswer> {
  const renamed = request.model !== undefined && request.model !== model.name
  const body = request.write({
    ...(renamed && { model: model.name }),
    ...(context !== null && { context, place }),
  })
  return upstream.post({ ...target, provider: model.provider, body, signal })
}

/** Hands the answer on. @returns what was heard of it, and what is kept of its bytes. */
async function relayed(
  ctx: Context,
  { config }: Backend,
  { dialect }: Door,
  call: Call,
  answer: UpstreamAnswer,
): Promise<Said & { kept: Kept }> {
  const { status, headers } = answer
  const contentType = String(headers['content-type'] ?? '')
  const listener = decompressing(
    dialect.listen({ status, contentType }),
    String(headers['content-encoding'] ?? ''),
  )
  const copy = call.once.keeps ? copyOf(answer) : undefined
  const hear = (bytes: Buffer): void => {
    listener.hear(bytes)
    copy?.hear(bytes)
  }
  const ending = await relay(ctx, answer, { hear, patienceMs: config.clientPatienceMs })
  const said = heardOf(call, answer, await listener.end(), ending)
  return { ...said, kept: copy && ending === 'whole' && status < 300 ? copy.end() : 'nothing' }
}

const recalledFor = (
  backend: Backend,
  { caller, request, decision, session, space, turnId }: Call,
): Recalled | Promise<Recalled> => {
  if (!decision.retrieve) return notAsked
  const { turn, turns } = request
  if (!turn || !turnId) return { ...notAsked, status: 'none' }
  return recallInTime(backend, caller, { turns, turn, turnId, session, space })
}

/** Undefined when nothing of this call may be stored. */
function openedFor(
  { exchanges }: Backend,
  { caller, request, decision, session, space, model, once, expiresAt, turnId }: Call,
): Promise<OpenExchange> | undefined {
  const said = decision.store ? request.said : []
  if (said.length === 0 && !decision.storeReply) return undefined
  return exchanges.open({
    operation: once.operation,
    owner: caller,
    session,
    embeddings: space.model,
    model: prefixed(model),
    said,
    expiresAt,
    turn: turnId,
  })
}

type Said = Omit<Heard, 'recalledTokens'>

const unheard: Said = {
  text: null,
  interrupted: true,
  unanswered: true,
  inputTokens: 0,
  outputTokens: 0,
}

/** Nothing of an error is remembered; of an answer that broke off, what was heard. */
function heardOf(
  { decision }: Call,
  { status }: UpstreamAnswer,
  { text, complete, failed, inputTokens = 0, outputTokens = 0 }: Reply,
  ending: Ending,
): Said {
  const answered = status < 400 && !failed && (complete || text !== '')
  return {
    text: answered && decision.storeReply && text !== '' ? text : null,
    interrupted: ending !== 'whole' || failed || !complete,
    unanswered: !answered,
    inputTokens,
    outputTokens,
  }
}

/** Longest that a client waits for the end of its answer while the database is slow. */
const storedWithinMs = 2_000

async function remember(
  backend: Backend,
  { caller, model, session, once }: Call,
  open: OpenExchange | undefined,
  heard: Heard,
): Promise<void> {
  if (open) return backend.exchanges.close(open, heard, storedWithinMs)
  const { inputTokens, outputTokens, recalledTokens } = heard
  recordCall(backend, caller, {
    id: once.operation,
    kind: 'proxy',
    model: prefixed(model),
    session,
    inputTokens,
    outputTokens,
    recalledTokens,
  })
}

/** Nobody is there any more to be answered. */
function leave(ctx: Context): 'nothing' {
  ctx.respond = false
  ctx.status = 499
  return 'nothing'
}

/** The bytes of an answer that may be given again. */
function copyOf({ status, headers }: UpstreamAnswer) {
  const type = String(headers['content-type'] ?? '')
  const chunks: Buffer[] = []
  let bytes = /event-stream/i.test(type) || headers['content-encoding'] ? Infinity : 0
  return {
    hear(chunk: Buffer): void {
      bytes += chunk.length
      if (bytes <= keptBytesMax) chunks.push(chunk)
      else chunks.length = 0
    },
    end: () =>
      bytes <= keptBytesMax
        ? { status, type, body: Buffer.concat(chunks).toString('base64') }
        : null,
  }
}
