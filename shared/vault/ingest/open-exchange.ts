import { recordModelCall } from '#shared/billing/meter.ts'
import { copyIdOf } from '#shared/core/ids.ts'
import type { Metadata } from '#shared/domain/metadata.ts'
import type { Message, Turn } from '#shared/domain/message-content.ts'
import { parseTurns, sentMessageContent, toReadTurns } from '#shared/domain/turn/conversation.ts'
import { acceptExchange, type ExchangeOwner } from '#shared/vault/ingest/ingest.ts'
import {
  listAbandonedExchanges,
  dropOpenExchanges,
  renewOpenExchanges,
} from '#shared/vault/ingest/open-exchanges.postgres.ts'
import { saveUnansweredTurns } from '#shared/vault/ingest/unanswered-turns.postgres.ts'
import { dropSteps, saveStep } from '#shared/vault/ingest/steps.postgres.ts'
import { toMessage, redactOrSkipTurns } from '#shared/privacy/apply-redaction.ts'
import { sanitizeText } from '#shared/core/sanitize-text.ts'
import type { Postgres, Query } from '#shared/storage/postgres/connect.ts'
import type { AcceptIngest } from '#shared/vault/ingest/accept.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { UsageWriter } from '#shared/billing/usage-writer.ts'
import type { Log } from '#shared/core/log.ts'

/** A model call whose user turns are written down and whose answer is still to come. */
export type OpenExchange = {
  operation: string
  owner: ExchangeOwner
  session: string | null
  /** The embedding model it will be stored with. */
  embeddings: string
  /** Provider-prefixed. */
  model: string
  /** The user's turns; empty when an earlier call for the same turn has stored them. */
  said: readonly Turn[]
  /** False where the answer is stored only with its input, and nothing of that is. */
  storesReply?: boolean
  /** The answer is stored as it came, with its marks of thoughts and calls of tools. */
  verbatim?: boolean
  /** The call brings results of tools: the text of earlier steps is no answer. */
  isContinuation?: boolean
  /** When its memories expire, in epoch milliseconds. */
  expiresAt?: number | undefined
  /** False: it is not told to the member's organization; true, when missing. */
  shares?: boolean
  /** Fields of every memory of it, as they may be stored. */
  metadata?: Metadata | undefined
  /** 32-byte hash of the user's turn: sent again before its answer has ended, it is stored once. */
  turn?: Buffer | undefined
}

/** How a model call ended. */
export type CompletionResult = {
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
  /** Tokens of the memories recalled for the call, which are billed with it. */
  recalledTokens: number
  /** Tags of the shared memories that the model was told. */
  inheritedTags?: readonly string[]
}

export type ExchangeBackend = {
  postgres: Postgres
  accept: AcceptIngest
  embedders: Embedders
  usage: UsageWriter
  now: () => number
  log: Log
}

/** Stores user and answer as one exchange, and closes the open one; any number of runs store it once. */
export async function storeExchange(
  backend: ExchangeBackend,
  exchange: OpenExchange,
  completion: CompletionResult,
): Promise<void> {
  const { operation, owner, session, model, embeddings: space } = exchange
  if (completion.unanswered) await saveUnansweredTurns(backend.postgres.query, [operation])
  const reply = redactOrSkipTurns(
    owner.keyRow?.redaction ?? null,
    exchange.storesReply === false ? [] : parseAnswerTurns(exchange, completion, backend.now()),
  )
  const isStep = completion.isStep === true && exchange.turn !== undefined
  if (isStep && reply.length > 0) await keepStep(backend.postgres.query, exchange, reply)
  const answer = isStep ? [] : reply.map(toMessage)
  const messages = [...exchange.said.map(toMessage), ...answer]
  const { inputTokens, outputTokens, recalledTokens, inheritedTags = [] } = completion
  const usage = { inputTokens, outputTokens, recalledTokens }
  const endsLoop = exchange.isContinuation && !isStep && !completion.unanswered
  const answeredTurn = endsLoop ? exchange.turn : undefined
  const { expiresAt, shares, metadata } = exchange
  const common = {
    session,
    model,
    embeddings: undefined,
    awaited: false,
    expiresAt,
    shares,
    metadata,
  }
  const { memories, closing } = await acceptExchange(backend, owner, {
    ...common,
    operation,
    messages,
    proxied: { ...usage, space, closes: true, answeredTurn, inheritedTags },
  })
  if (memories === 0) {
    recordModelCall(backend, owner, { id: operation, kind: 'proxy', model, session, ...usage })
    if (answeredTurn) await dropSteps(backend.postgres.query, owner.scope.vault, answeredTurn)
    return dropOpenExchanges(backend.postgres.query, [operation])
  }
  // This process stalled for minutes; a sweep has stored the user's turns without the answer.
  if (closing !== 'swept' || answer.length === 0) return
  await acceptExchange(backend, owner, {
    ...common,
    operation: copyIdOf(operation, 0, 'answer'),
    messages: answer,
    proxied: { ...usage, space, closes: false, inheritedTags },
  })
}

/** Keeps the text of a step in case no other call of its turn follows; it replaces that of the step before. */
const keepStep = (
  query: Query,
  { operation: call, owner, turn }: OpenExchange,
  said: readonly Turn[],
): Promise<void> =>
  saveStep(query, {
    vault: owner.scope.vault,
    turn: turn!,
    operation: copyIdOf(call, 0, 'step'),
    call,
    said,
  })

function parseAnswerTurns(
  { verbatim }: OpenExchange,
  { text, interrupted }: CompletionResult,
  now: number,
): Turn[] {
  const content = verbatim ? sentMessageContent(text ?? '') : (text ?? '')
  const message = { role: 'assistant', content, timestamp: now, interrupted }
  return (verbatim ? toReadTurns([message]) : parseTurns([message])).map(sanitizeTurn)
}

/** Characters from which on a text is sanitized only where it is decoded: 18 MB take up to 40 ms. */
const longTextMin = 256 * 1024

/** The turns of messages that were read, as stored: texts, and placeholders in place of media. */
export const toStorableTurns = (messages: readonly Message[]): Turn[] =>
  toReadTurns(messages).map(turn =>
    turn.text.length < longTextMin
      ? sanitizeTurn(turn)
      : { ...sanitizeTurn({ ...turn, text: '' }), text: turn.text },
  )

const sanitizeTurn = ({ text, speaker, ...turn }: Turn): Turn => ({
  ...turn,
  text: sanitizeText(text),
  ...(speaker !== undefined && { speaker: sanitizeText(speaker) }),
})

const abandonedSeconds = 120
const abandonedMax = 500

/**
 * Stores the user turns of calls whose process died before their answer, under the operation of the call:
 * they are stored once, by whichever process runs this first.
 *
 * @returns the number of exchanges.
 */
export async function storeAbandoned(backend: ExchangeBackend): Promise<number> {
  const rows = await listAbandonedExchanges(backend.postgres.query, {
    seconds: abandonedSeconds,
    limit: abandonedMax,
  })
  const usage = { inputTokens: 0, outputTokens: 0, recalledTokens: 0 }
  const noCompletion = { text: null, interrupted: true, unanswered: true, ...usage }
  const failed: string[] = []
  for (const { account, vault, keyHash, ...row } of rows) {
    const { operation } = row
    const exchange = { ...row, owner: { account, keyHash, scope: { vault } } }
    await storeExchange(backend, exchange, noCompletion).catch((error: unknown) => {
      backend.log.warn({ err: error, operation }, 'exchange.not-yet-stored')
      failed.push(operation)
    })
  }
  // Those that cannot be stored now wait behind the others: however many they are, they hold up none.
  if (failed.length > 0) await renewOpenExchanges(backend.postgres.query, failed)
  return rows.length
}
