import { createHash } from 'node:crypto'
import type { MemoryUse, ProxyCall } from '#api/proxy/proxy-call.ts'
import type { Reply } from '#api/proxy/dialects/dialect.ts'
import type { RecallResult } from '#api/proxy/recall.ts'
import type { RelayOutcome } from '#api/proxy/relay.ts'
import { recordModelCall } from '#shared/billing/meter.ts'
import type { Backend } from '#shared/backend.ts'
import type { ExchangeResult, OpenExchange } from '#shared/vault/ingest/exchange.ts'
import { prefixedName } from '#shared/models/resolve-model.ts'

/**
 * Writes down what the user says in a call.
 *
 * @returns undefined when nothing of the call may be stored.
 * @throws Refusal `unavailable` when Postgres is unreachable.
 */
export function openExchange(
  { exchanges }: Backend,
  { caller, request, model, idempotentCall, memoryUse }: ProxyCall,
): Promise<OpenExchange> | undefined {
  const { memoryAccess, session, space, verbatim, expiresAt, shares, metadata } = memoryUse
  if (!memoryAccess.store && !memoryAccess.storeReply) return undefined
  const isContinuation = request.userTurn?.isToolContinuation ?? false
  // A turn that is first seen at its tool results is stored with them.
  const messages = isContinuation ? request.userTurn!.messages : request.newMessages
  const userMessages = memoryAccess.store ? messages : []
  const { responseWithInput } = caller.keyRow.storage
  const storable = responseWithInput ? (request.userTurn?.storable ?? []) : undefined
  const storesReply = memoryAccess.storeReply && storable?.length !== 0
  if (userMessages.length === 0 && !storesReply) return undefined
  return exchanges.open({
    operation: idempotentCall.operation,
    owner: caller,
    session,
    embeddings: space.model,
    model: prefixedName(model),
    userMessages,
    words: wordsKey(request, memoryUse),
    storable,
    verbatim,
    unansweredBefore: memoryUse.unansweredBefore,
    isContinuation,
    expiresAt,
    shares,
    metadata,
    turn: memoryUse.turnId,
  })
}

/** Characters at either end of a message that are its key: a hash of 18 MB takes a turn of its own. */
const keyCharacters = 16 * 1024

/**
 * Identifies the words of the user in a turn of this conversation, whatever a client has cut of the history by now;
 * undefined for a turn without words, such as a picture.
 */
function wordsKey(
  { words }: ProxyCall['request'],
  { conversation, space }: MemoryUse,
): Buffer | undefined {
  if (words === '') return undefined
  const ends = [words.slice(0, keyCharacters), words.slice(-keyCharacters)]
  const parts = ['words', conversation, space.model, words.length, ...ends]
  return createHash('sha256').update(JSON.stringify(parts)).digest()
}

const noReply: Reply = { text: '', truncated: false, complete: false, failed: false }

/** How the answer of a provider came to the client. */
export type RelayedReply = { status: number; reply: Reply; relayed: RelayOutcome }

/**
 * What is stored and billed of a call. Nothing is stored of an error; of an answer that was interrupted, the text up to
 * there.
 *
 * @param answer undefined where there was none
 */
export function toExchangeResult(
  { memoryAccess, verbatim }: MemoryUse,
  { block, tags: inheritedTags }: Pick<RecallResult, 'block' | 'tags'>,
  answer: RelayedReply | undefined,
): ExchangeResult {
  const { text, complete, failed, ...reply } = answer?.reply ?? noReply
  const answered =
    answer !== undefined && answer.status < 400 && !failed && (complete || text !== '')
  return {
    text: answered && memoryAccess.storeReply && text !== '' ? text : null,
    // Clients may leave once they have the provider's mark of the end.
    interrupted: answer?.relayed === 'interrupted' || failed || !complete,
    unanswered: !answered,
    isStep: reply.isStep === true && !verbatim,
    inputTokens: reply.inputTokens ?? 0,
    cachedTokens: reply.cachedTokens ?? 0,
    outputTokens: reply.outputTokens ?? 0,
    recalledTokens: block?.prepared.recalledTokens ?? 0,
    inheritedTags,
  }
}

/**
 * Longest that a client waits for the end of its response while Postgres is slow; it is no shorter than what a call waits for
 * its memories.
 */
const storeTimeoutMs = 2_000

/** Stores the exchange with its reply; bills a call that opened none. */
export async function closeExchange(
  backend: Backend,
  { caller, model, memoryUse: { session }, idempotentCall }: ProxyCall,
  exchange: OpenExchange | undefined,
  outcome: ExchangeResult,
): Promise<void> {
  const dollars = backend.prices.costOf(prefixedName(model), outcome) ?? 0
  backend.budgets.spend(caller.budgets, outcome.inputTokens + outcome.outputTokens, dollars)
  const withinMs = Math.max(storeTimeoutMs, backend.config.recallTimeoutMs)
  if (exchange) return backend.exchanges.close(exchange, outcome, withinMs)
  const { inputTokens, cachedTokens, outputTokens, recalledTokens } = outcome
  recordModelCall(backend, caller, {
    id: idempotentCall.operation,
    kind: 'proxy',
    model: prefixedName(model),
    session,
    inputTokens,
    cachedTokens,
    outputTokens,
    recalledTokens,
  })
}
