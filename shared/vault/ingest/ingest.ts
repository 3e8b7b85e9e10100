import { redactMetadata } from '#shared/privacy/apply-redaction.ts'
import { Refusal } from '#shared/core/errors.ts'
import { createSlices, runInSlices } from '#shared/core/event-loop.ts'
import { toLargeJson } from '#shared/core/canonical-json.ts'
import { memoryIdOf } from '#shared/core/ids.ts'
import { withMemorySpan } from '#shared/core/trace.ts'
import type { Message } from '#shared/domain/message-content.ts'
import {
  bothHalves,
  readSentMessageSteps,
  type SentMessages,
  type StoredHalves,
} from '#shared/domain/turn/conversation.ts'
import { expiryFor } from '#shared/domain/expiry.ts'
import type { Memory } from '#shared/domain/memory.ts'
import {
  toExtractionInput,
  acceptTurns,
  type ExtractionInput,
} from '#shared/vault/ingest/turn-extraction.ts'
import {
  acceptExchanges,
  type CloseOutcome,
  type ExchangeWork,
} from '#shared/vault/ingest/accept-exchanges.postgres.ts'
import type { Exchange, ExchangeOwner, ExchangeResult } from '#shared/vault/ingest/exchange.ts'
import { chunkMessagesInThread } from '#shared/vault/ingest/text-thread.ts'
import type { ChunkedTurn } from '#shared/vault/base/text-chunks.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { OpenTransaction, Postgres } from '#shared/storage/postgres/connect.ts'
import { groupCommit } from '#shared/storage/postgres/group-commit.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'

type AcceptedExchange = {
  /** Tokens of the user's turns. */
  userTokens: number
  /** Tokens of the assistant's turns. */
  assistantTokens: number
  memories: number
  /** Messages that are not stored, by reason. */
  leftOut: SentMessages['leftOut']
}

/**
 * The first half of ingest, in the request: turns a finished exchange into memories, and writes operation,
 * bill and job (`IngestJob`) in one transaction. An accepted exchange is always stored, a refused one never
 * billed. The second half is `storeAccepted`, in the job: it embeds and stores the memories, once per
 * operation.
 *
 * @throws Refusal `invalid` when it holds no user or assistant turn to store, when the policy of the key
 *   blocks one, or `embeddings` names no known model; `upstream` when that model's provider does not answer.
 */
export async function acceptExchange(
  backend: { ingest: IngestWriter; now: () => number; embedders: Embedders },
  owner: ExchangeOwner,
  exchangeToStore: Omit<Exchange, 'owner' | 'embeddings'> & {
    messages: readonly Message[]
    /** Embedding model that names the vault space. */
    embeddings: string | undefined
    /** The request will wait until the exchange can be searched. */
    awaited: boolean
    /** Both, when missing. */
    stores?: StoredHalves | undefined
    /** Ends the cutting of long texts. */
    signal?: AbortSignal
  },
): Promise<AcceptedExchange> {
  const { messages: sent, stores = bothHalves, awaited, signal, ...given } = exchangeToStore
  const redaction = owner.keyRow?.redaction ?? null
  const { messages: spoken, leftOut } = await runInSlices(readSentMessageSteps(sent, stores))
  const { messages, turns } = await chunkMessagesInThread(redaction, spoken, signal)
  const metadata = redactMetadata(redaction, given.metadata)
  const reasons = Object.keys(leftOut)
  if (isEmpty(turns) && reasons.every(reason => reason === 'unreadable')) {
    throw new Refusal(
      'invalid',
      'messages holds no user or assistant turn to store',
      reasons.length > 0
        ? 'Give what is said as content: a text, or a list of parts with text'
        : 'Turns of system and tools are not stored',
    )
  }
  const embeddings = await requireKnownModel(backend.embedders, given.embeddings)
  const exchange = { ...given, owner, embeddings, metadata }
  const { closing: _, ...counts } = await accept(backend, exchange, { messages, turns, awaited })
  return { ...counts, leftOut }
}

/** What is stored of a model call. */
type FinishedCall = {
  /** Read and redacted before, since it is too late to refuse them. */
  messages: readonly Message[]
  result: Omit<ExchangeResult, 'text' | 'interrupted' | 'unanswered' | 'isStep'>
  /** It closes the open exchange of its operation. */
  closes: boolean
  /** The turn whose tool loop it ends. */
  answeredTurn?: Buffer | undefined
}

/**
 * As `acceptExchange`, of a model call.
 *
 * @returns the state of the open exchange that it was to close, null where there was none to close; undefined without a
 *   turn to store: nothing was accepted or closed then.
 */
export async function acceptCall(
  backend: { ingest: IngestWriter; now: () => number },
  exchange: Exchange,
  call: FinishedCall,
): Promise<CloseOutcome | null | undefined> {
  const { messages, turns } = await chunkMessagesInThread(null, call.messages)
  if (isEmpty(turns)) return undefined
  const { closing } = await accept(backend, exchange, { messages, turns, awaited: false, call })
  return closing
}

const isEmpty = (turns: readonly ChunkedTurn[]): boolean =>
  turns.every(({ chunks }) => chunks.length === 0)

async function accept(
  { ingest, now }: { ingest: IngestWriter; now: () => number },
  exchange: Exchange,
  readExchange: {
    messages: readonly Message[]
    turns: readonly ChunkedTurn[]
    awaited: boolean
    call?: FinishedCall
  },
): Promise<Omit<AcceptedExchange, 'leftOut'> & { closing: CloseOutcome | null }> {
  const { messages, turns, awaited, call } = readExchange
  const { operation, owner, session, model, embeddings, metadata } = exchange
  const { account, keyHash, scope, keyRow } = owner
  const days = keyRow?.retentionDays ?? null
  const expiry = expiryFor({ requested: exchange.expiresAt, days, storedAt: now() })
  const memories = (await toMemories(operation, turns, now())).map(memory => ({
    ...memory,
    ...expiry,
    ...(metadata && { metadata }),
  }))
  const textLength = memories.reduce((sum, { text }) => sum + text.length, 0)
  const userTokens = sumTokens(memories, 'user')
  const assistantTokens = sumTokens(memories, 'assistant')
  const accepted: MemberExchangeWork = {
    operation: {
      id: operation,
      account,
      vault: scope.vault,
      keyHash,
      kind: call ? 'proxy' : 'ingest',
      awaited,
      session,
      billing: {
        model,
        inputTokens: call?.result.inputTokens || userTokens,
        cachedTokens: call?.result.cachedTokens ?? 0,
        outputTokens: call?.result.outputTokens || assistantTokens,
        memoryTokens: userTokens + assistantTokens + (call?.result.recalledTokens ?? 0),
      },
    },
    payload: {
      model: embeddings,
      ...(days !== null && { retentionDays: days }),
      memories: await toLargeJson(memories, textLength),
    },
    closesExchange: call?.closes ?? false,
    answeredTurn: call?.answeredTurn,
    extractionInput: isShared(exchange)
      ? toExtractionInput(owner, {
          session,
          messages,
          saidAt: now(),
          inheritedTags: call?.result.inheritedTags ?? [],
        })
      : undefined,
  }
  const closing = await withMemorySpan(
    'create_memory',
    { vault: scope.vault, ids: () => memories.map(({ id }) => id) },
    () => ingest.accept(accepted),
  )
  return { userTokens, assistantTokens, memories: memories.length, closing }
}

/** Text that expires is not sent to extraction, since shared memories do not expire with it. */
const isShared = ({ expiresAt, shares }: Exchange): boolean =>
  expiresAt === undefined && shares !== false

const sumTokens = (memories: readonly Memory[], ofRole: Memory['role']): number =>
  memories.reduce((sum, { role, tokens }) => sum + (role === ofRole ? tokens : 0), 0)

/**
 * One memory per turn, several for a long turn. Turns without a time of their own get the time of arrival, a
 * millisecond apart as lines of a file do, so that rows of one time are known to be no conversation.
 */
async function toMemories(
  operation: string,
  turns: readonly ChunkedTurn[],
  now: number,
): Promise<Memory[]> {
  const memories: Memory[] = []
  const { pause } = createSlices()
  for (const [turn, { role, at, speaker, interrupted, chunks }] of turns.entries()) {
    const message = memoryIdOf(operation, memories.length)
    for (const [number, { text, tokens }] of chunks.entries()) {
      await pause()
      memories.push({
        id: memoryIdOf(operation, memories.length),
        tier: 1,
        role,
        text,
        at: at ?? now - (turns.length - 1 - turn),
        tokens,
        ...(chunks.length > 1 && { piece: { message, number } }),
        ...(speaker !== undefined && { speaker }),
        ...(interrupted && { interrupted }),
      })
    }
  }
  return memories
}

/** Refuses an unknown model in the request, since the job runs later. */
async function requireKnownModel(
  embedders: Embedders,
  requestedModel: string | undefined,
): Promise<string> {
  if (requestedModel === undefined || requestedModel === embedders.defaultModel)
    return embedders.defaultModel
  return (await embedders.get(requestedModel)).model
}

type MemberExchangeWork = ExchangeWork & {
  /** Text of a member's exchange that may add something to the memory of their organization. */
  extractionInput?: ExtractionInput | undefined
}

/**
 * Accepts exchanges: operation, bill and job in one transaction, under one id. When `accept` resolves the
 * exchange will be stored, whatever process dies; when it rejects nothing was written. An exchange whose
 * operation existed before is not accepted again. Requests that arrive together share a transaction.
 */
export class IngestWriter {
  readonly #queue: Queue
  readonly #gatherSeconds: number
  /** @returns the state of the open exchange that it closes (accepted only if that is `open`); null: it closes none. */
  readonly accept: (exchange: MemberExchangeWork) => Promise<CloseOutcome | null>

  /** @param gatherSeconds how long a member's exchange waits for others before it is extracted */
  constructor(postgres: Postgres, queue: Queue, gatherSeconds: number) {
    this.#queue = queue
    this.#gatherSeconds = gatherSeconds
    const limits = { concurrency: 2, batchMax: 100 }
    this.accept = groupCommit(postgres, (tx, batch) => this.#acceptAll(tx, batch), limits)
  }

  async #acceptAll(
    tx: OpenTransaction,
    exchanges: readonly MemberExchangeWork[],
  ): Promise<(CloseOutcome | null)[]> {
    const accepting = acceptExchanges(tx, exchanges)
    if (exchanges.every(({ extractionInput }) => extractionInput === undefined)) tx.commit()
    const accepted = await accepting
    // The text of members goes to extraction for their organizations.
    const inputs = exchanges.flatMap(({ operation, extractionInput }, index) => {
      const { epoch, sessionEpoch, fresh } = accepted[index]!
      if (!extractionInput || !fresh) return []
      const { id: turn, vault, keyHash } = operation
      return [{ ...extractionInput, turn, vault, keyHash, epoch, sessionEpoch }]
    })
    if (inputs.length > 0) await acceptTurns(tx, this.#queue, inputs, this.#gatherSeconds)
    return accepted.map(({ closing }) => closing)
  }
}
