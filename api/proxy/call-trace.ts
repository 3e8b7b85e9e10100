import { hash, webcrypto } from 'node:crypto'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import type { RequestChange } from '#api/proxy/dialects/dialect.ts'
import type { ProxyCall, ProxyEndpoint } from '#api/proxy/proxy-call.ts'
import type { RecallResult } from '#api/proxy/recall.ts'
import type { AnswerFacts } from '#api/proxy/response-headers.ts'
import { countMarks } from '#shared/domain/turn/text.ts'
import { prefixedName } from '#shared/models/resolve-model.ts'
import type { RecallTrace, TracedBlock } from '#shared/vault/read/traces/call-trace.ts'
import type { NewCallTrace } from '#shared/vault/read/traces/call-traces.postgres.ts'
import { blockOfContext } from '#shared/vault/read/traces/recall-trace.ts'

/** What a call is sent with. */
type SentRequest = { body: Buffer; change: RequestChange }

/** Whether a trace of the call is kept: it reads memory for a turn, and the account's policy has traces. */
const isTraced = ({ caller, memoryUse: { retrieves, turnId } }: ProxyCall): boolean =>
  retrieves && turnId !== undefined && caller.keyRow.traces.mode !== 'off'

/**
 * Stores the trace of a call while the provider works, and names it in a header. A call without memory has
 * none. The trace of a call that is sent a second time is that of the second request.
 *
 * @returns a promise that resolves when it is stored; it never rejects
 */
export async function saveCallTrace(
  run: {
    answer: { facts: AnswerFacts }
    backend: Pick<ApiBackend, 'recalledTurns' | 'log'>
    endpoint: Pick<ProxyEndpoint, 'dialect'>
    call: ProxyCall
  },
  recalled: RecallResult,
  sent: SentRequest,
): Promise<void> {
  const {
    answer,
    backend: { recalledTurns, log },
    endpoint: { dialect },
    call,
  } = run
  if (!isTraced(call)) return
  const { caller, idempotentCall, memoryUse, request } = call
  // Now: the texts that it reads are dropped while the provider works.
  const leftOut = countMarks(request.leftOut)
  const { operation } = idempotentCall
  const { vault, epoch } = caller.scope
  answer.facts.trace = operation
  const build = async (): Promise<NewCallTrace> => ({
    id: operation,
    vault,
    epoch,
    session: memoryUse.session,
    days: caller.keyRow.traces.days,
    way: 'proxy',
    trace: {
      format: dialect.apiFormat,
      leftOut,
      ...traceOfRecall(call, recalled),
      ...(await traceOfRequest(call, sent)),
    },
  })
  await recalledTurns
    .saveTrace(build)
    .catch((error: unknown) =>
      log.warn({ err: error, account: caller.account }, 'proxy.trace-not-kept'),
    )
}

function traceOfRecall(
  { request, caller, memoryUse: { space, asOf } }: ProxyCall,
  recalled: RecallResult,
): RecallTrace {
  const { status, block, contextTokens } = recalled
  return {
    embeddings: space.model,
    status,
    revision: caller.scope.revision,
    ...(asOf !== undefined && { asOf }),
    ...(block?.isNew && {
      confidence: block.prepared.confidence,
      abstained: block.prepared.abstained,
    }),
    blocks: tracedBlocks(request, recalled),
    tokens: contextTokens,
    leftOutMemories: block?.prepared.leftOut ?? 0,
  }
}

async function traceOfRequest({ request, model }: ProxyCall, { body, change }: SentRequest) {
  const { inserted, removed, receivedBytes } = request.splicesOf(change)
  return {
    model: prefixedName(model),
    splices: inserted,
    removed,
    receivedBytes,
    sentBytes: body.length,
    sentSha256: await sha256Of(body),
  }
}

function tracedBlocks(
  { earlierTurns }: ProxyCall['request'],
  { earlier, block }: RecallResult,
): TracedBlock[] {
  const blocks = earlier
    .filter(({ prepared }) => prepared.memories > 0)
    .map(({ turn, blockIndex, prepared }) =>
      blockOfContext(prepared, earlierTurns.indexOf(turn), blockIndex),
    )
  if (block && block.prepared.memories > 0)
    blocks.push(blockOfContext(block.prepared, null, block.blockIndex))
  return blocks
}

/** A longer body is hashed by another thread. */
const ownThreadBytesMax = 256 * 1024

/** SHA-256 in hex. */
async function sha256Of(bytes: Buffer): Promise<string> {
  if (bytes.length <= ownThreadBytesMax) return hash('sha256', bytes, 'hex')
  const digest = await webcrypto.subtle.digest('SHA-256', bytes)
  return Buffer.from(digest).toString('hex')
}
