import { redactMetadata } from '#shared/privacy/apply-redaction.ts'
import { Refusal } from '#shared/core/errors.ts'
import { createSlices, runInSlices } from '#shared/core/event-loop.ts'
import { toLargeJson } from '#shared/core/canonical-json.ts'
import { memoryIdOf } from '#shared/core/ids.ts'
import type { Caller } from '#shared/access/caller.ts'
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
import type { Exchange } from '#shared/vault/ingest/open-exchanges.postgres.ts'
import { chunkMessagesAside } from '#shared/vault/ingest/text-thread.ts'
import type { ChunkedTurn } from '#shared/vault/base/text-chunks.ts'
import type { NewOperation } from '#shared/operations/operations.postgres.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { OpenTransaction, Postgres } from '#shared/storage/postgres/connect.ts'
import { groupCommit } from '#shared/storage/postgres/group-commit.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'

/** An exchange to store. */
type ExchangeToStore = Exchange & {
  /** Of a proxied call they were read before. */
  messages: readonly Message[]
  /** Embedding model that names the vault space. */
  embeddings: string | undefined
  /** The request will wait until the exchange can be searched. */
  awaited: boolean
  /** Both, when missing. Of a proxied call that was decided before. */
  stores?: StoredHalves | undefined
  /** Of a proxied model call: see `open-exchanges.ts`. */
  proxied?: Omit<ExchangeResult, 'text' | 'interrupted' | 'unanswered' | 'isStep'> & {
    /** It closes the open exchange of its operation. */
    closes: boolean
    /** The turn whose tool loop it ends. */
    answeredTurn?: Buffer | undefined
    /** The embedding model of its vectors. */
    space: string
  }
}

/** How a model call ended. */
export type ExchangeResult = {
  /** The text of the answer to store; null when there is none. */
  text: string | null
  /** The answer ended early. */
  interrupted: boolean
  /** No answer came: the client will send the turn again. */
  unanswered: boolean
  /** The model calls tools: its text is stored only if the turn never ends. */
  isStep?: boolean
  /** As counted by the provider; 0 where it reports none. */
  inputTokens: number
  outputTokens: number
  /** Tokens of the memories recalled for the call, billed with it as one request. */
  recalledTokens: number
  /** Tags of the shared memories in the prompt. */
  inheritedTags?: readonly string[]
}

/** Owner of an exchange; a `Caller` is one. */
export type ExchangeOwner = Pick<Caller, 'account' | 'keyHash'> & {
  scope: Pick<Caller['scope'], 'vault'>
  /** Left out where it is unknown whether the key is a member's. */
  memberScope?: Caller['memberScope']
  /** Redaction and retention; left out where they are unknown. */
  keyRow?: Pick<Caller['keyRow'], 'redaction' | 'retentionDays'>
}

type AcceptedExchange = {
  /** Tokens of the user's turns. */
  userTokens: number
  /** Tokens of the assistant's turns. */
  assistantTokens: number
  memories: number
  /** Messages that are not stored, by reason. */
  leftOut: SentMessages['leftOut']
  /** Of one that closes an exchange which was no longer open: its state. Nothing was accepted then. */
  closing?: CloseOutcome
}

/**
 * The first half of ingest, in the request: turns a finished exchange into memories, and writes operation,
 * bill and job (`IngestJob`) in one transaction. An accepted exchange is always stored, a refused one never
 * billed. The second half is `storeAccepted`, in the job: it embeds and stores the memories, once per
 * operation.
 *
 * @returns no memories for a proxied call without a turn to store: nothing was accepted or closed then.
 * @throws Refusal `invalid` when it holds no user or assistant turn to store, when the policy of the key
 *   blocks one, or `embeddings` names no known model; `upstream` when that model's provider does not answer.
 */
export async function acceptExchange(
  { ingest, embedders, now }: { ingest: IngestWriter; embedders: Embedders; now: () => number },
  caller: ExchangeOwner,
  exchange: ExchangeToStore,
): Promise<AcceptedExchange> {
  const { proxied } = exchange
  const { messages, memories, leftOut } = await readMemories(caller, exchange, now)
  // No client waits for a refusal of a proxied exchange: without memories, nothing is accepted.
  if (memories.length === 0 && proxied)
    return { userTokens: 0, assistantTokens: 0, memories: 0, leftOut }
  const reasons = Object.keys(leftOut)
  if (memories.length === 0 && reasons.every(reason => reason === 'unreadable')) {
    throw new Refusal(
      'invalid',
      'messages holds no user or assistant turn to store',
      reasons.length > 0
        ? 'Give what is said as content: a text, or a list of parts with text'
        : 'Turns of system and tools are not stored',
    )
  }
  // Of a proxied call the model was resolved at the start; its provider may be unreachable by now.
  const model = proxied?.space ?? (await requireKnownModel(embedders, exchange.embeddings))
  const days = caller.keyRow?.retentionDays ?? null
  const textLength = memories.reduce((sum, { text }) => sum + text.length, 0)
  const counts = {
    userTokens: sumTokens(memories, 'user'),
    assistantTokens: sumTokens(memories, 'assistant'),
  }
  const closing = await ingest.accept({
    operation: toOperation(caller, exchange, counts),
    payload: {
      model,
      ...(days !== null && { retentionDays: days }),
      memories: await toLargeJson(memories, textLength),
    },
    closesExchange: proxied?.closes ?? false,
    answeredTurn: proxied?.answeredTurn,
    extractionInput: isShared(exchange)
      ? toExtractionInput(caller, {
          ...exchange,
          messages,
          saidAt: now(),
          inheritedTags: proxied?.inheritedTags ?? [],
        })
      : undefined,
  })
  return {
    ...counts,
    memories: memories.length,
    leftOut,
    ...(closing && closing !== 'open' && { closing }),
  }
}

/** Text that expires is not sent to extraction, since shared memories do not expire with it. */
const isShared = ({ expiresAt, shares }: ExchangeToStore): boolean =>
  expiresAt === undefined && shares !== false

const sumTokens = (memories: readonly Memory[], ofRole: Memory['role']): number =>
  memories.reduce((sum, { role, tokens }) => sum + (role === ofRole ? tokens : 0), 0)

const toOperation = (
  { account, keyHash, scope }: ExchangeOwner,
  { operation, session, awaited, model, proxied }: ExchangeToStore,
  { userTokens, assistantTokens }: Pick<AcceptedExchange, 'userTokens' | 'assistantTokens'>,
): NewOperation => ({
  id: operation,
  account,
  vault: scope.vault,
  keyHash,
  kind: proxied ? 'proxy' : 'ingest',
  awaited,
  session,
  billing: {
    model,
    inputTokens: proxied?.inputTokens || userTokens,
    outputTokens: proxied?.outputTokens || assistantTokens,
    memoryTokens: userTokens + assistantTokens + (proxied?.recalledTokens ?? 0),
  },
})

type ExchangeMemories = {
  messages: readonly Message[]
  memories: Memory[]
  leftOut: SentMessages['leftOut']
}

/** The turns of an exchange, redacted as the key's policy wants it, and the memories of them. */
async function readMemories(
  { keyRow }: ExchangeOwner,
  { operation, messages: given, proxied, expiresAt, metadata: fields, stores }: ExchangeToStore,
  now: () => number,
): Promise<ExchangeMemories> {
  // Of a proxied call the user's turns were redacted when it was opened; it is too late to refuse it.
  const redaction = proxied ? null : (keyRow?.redaction ?? null)
  // Of a proxied call everything was read before.
  const { messages: spoken, leftOut } = proxied
    ? { messages: given, leftOut: {} }
    : await runInSlices(readSentMessageSteps(given, stores ?? bothHalves))
  const { messages, turns } = await chunkMessagesAside(redaction, spoken)
  const metadata = redactMetadata(redaction, fields)
  const days = keyRow?.retentionDays ?? null
  const expiry = expiryFor({ requested: expiresAt, days, storedAt: now() })
  const memories = (await toMemories(operation, turns, now())).map(memory => ({
    ...memory,
    ...expiry,
    ...(metadata && { metadata }),
  }))
  return { messages, memories, leftOut }
}

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
  /** @returns of one that closes an open exchange the state of that; only an `open` one was accepted. */
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
