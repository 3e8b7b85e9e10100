import { recordModelCall } from '#shared/billing/meter.ts'
import { copyIdOf } from '#shared/core/ids.ts'
import { parseTurns, type Message, type Turn } from '#shared/domain/message-content.ts'
import { acceptExchange, type ExchangeOwner } from '#shared/vault/ingest/ingest.ts'
import {
  listAbandonedExchanges,
  dropOpenExchanges,
  saveUnansweredTurns,
} from '#shared/vault/ingest/open-exchanges.postgres.ts'
import { toMessage, redactOrSkipTurns } from '#shared/privacy/apply-redaction.ts'
import { sanitizeText } from '#shared/core/sanitize-text.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import type { AcceptIngest } from '#shared/vault/ingest/accept.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { UsageWriter } from '#shared/billing/usage.postgres.ts'
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
  /** When its memories expire, in epoch milliseconds. */
  expiresAt?: number | undefined
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
  /** As counted by the provider; 0 where it reports none. */
  inputTokens: number
  outputTokens: number
  /** Tokens of the memories recalled for the call, which are billed with it. */
  recalledTokens: number
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
  const turns = redactOrSkipTurns(
    owner.keyRow?.redaction ?? null,
    parseAnswerTurns(completion, backend.now()),
  )
  const answer = turns.map(toMessage)
  const messages = [...exchange.said.map(toMessage), ...answer]
  const { inputTokens, outputTokens, recalledTokens } = completion
  const usage = { inputTokens, outputTokens, recalledTokens }
  if (messages.length === 0) {
    recordModelCall(backend, owner, { id: operation, kind: 'proxy', model, session, ...usage })
    return dropOpenExchanges(backend.postgres.query, [operation])
  }
  const { expiresAt } = exchange
  const common = { session, model, embeddings: undefined, awaited: false, expiresAt }
  const { closing } = await acceptExchange(backend, owner, {
    ...common,
    operation,
    messages,
    proxied: { ...usage, space, closes: true },
  })
  // This process stalled for minutes; a sweep has stored the user's turns without the answer.
  if (closing !== 'swept' || answer.length === 0) return
  await acceptExchange(backend, owner, {
    ...common,
    operation: copyIdOf(operation, 0, 'answer'),
    messages: answer,
    proxied: { ...usage, space, closes: false },
  })
}

const parseAnswerTurns = ({ text, interrupted }: CompletionResult, now: number): Turn[] =>
  parseStorableTurns([{ role: 'assistant', content: text ?? '', timestamp: now, interrupted }])

/** The turns of messages as stored: texts, and placeholders in place of media. */
export const parseStorableTurns = (messages: readonly Message[]): Turn[] =>
  parseTurns(messages).map(({ text, speaker, ...turn }) => ({
    ...turn,
    text: sanitizeText(text),
    ...(speaker !== undefined && { speaker: sanitizeText(speaker) }),
  }))

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
  for (const { account, vault, keyHash, ...row } of rows) {
    const { operation } = row
    const exchange = { ...row, owner: { account, keyHash, scope: { vault } } }
    // One that cannot be stored now does not keep the others from being stored.
    await storeExchange(backend, exchange, noCompletion).catch((error: unknown) =>
      backend.log.warn({ err: error, operation }, 'exchange.not-yet-stored'),
    )
  }
  return rows.length
}
