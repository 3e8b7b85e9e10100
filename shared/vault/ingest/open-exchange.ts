import { setTimeout as delay } from 'node:timers/promises'
import { recordModelCall } from '#shared/billing/meter.ts'
import { batchLoader } from '#shared/core/batch-loader.ts'
import { copyIdOf } from '#shared/core/ids.ts'
import { parseTurns, type Message, type Turn } from '#shared/domain/message-content.ts'
import { acceptExchange, type ExchangeOwner } from '#shared/vault/ingest/ingest.ts'
import {
  listAbandonedExchanges,
  dropOpenExchanges,
  insertOpenExchanges,
  saveUnansweredTurns,
  renewOpenExchanges,
  type NewOpenExchange,
} from '#shared/vault/ingest/open-exchanges.postgres.ts'
import { toMessage, redactOrSkipTurns } from '#shared/privacy/apply-redaction.ts'
import { sanitizeText } from '#shared/core/sanitize-text.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import type { AcceptWork } from '#shared/vault/ingest/accept.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { UsageWriter } from '#shared/billing/usage.postgres.ts'
import type { Log } from '#shared/core/log.ts'

/** A model call under way, whose user has been heard and whose answer is still to come. */
export type OpenExchange = {
  operation: string
  owner: ExchangeOwner
  session: string | null
  /** The embedding model it is to be stored with. */
  embeddings: string
  /** Provider-prefixed. */
  model: string
  /** Nothing when it has been stored with an earlier call for the same turn. */
  said: readonly Turn[]
  /** When all of it is to be over, in epoch milliseconds. */
  expiresAt?: number | undefined
  /** 32 bytes that stand for the user's turn: sent again before its answer has ended, it is stored once. */
  turn?: Buffer | undefined
}

/** What came of it. */
export type CompletionResult = {
  /** What is to be stored of the answer; null when nothing is. */
  text: string | null
  /** The answer broke off. */
  interrupted: boolean
  /** Not a word of it came: whoever asked will ask again. */
  unanswered: boolean
  /** As the provider counts them; 0 where it does not say. */
  inputTokens: number
  outputTokens: number
  /** Tokens of the memories recalled for the call, which are billed with it. */
  recalledTokens: number
}

export type OpenExchanges = {
  /**
   * Writes down what a user has said, before anybody else is told: from here on it is stored, even if
   * this process dies.
   *
   * @throws Refusal `unavailable` when the database is out of reach.
   */
  open(exchange: Omit<OpenExchange, 'said'> & { said: readonly Message[] }): Promise<OpenExchange>
  /**
   * Stores user and answer as one exchange, in place of what was written down. When the database is
   * away this goes on trying for ten minutes; after that, the user's words alone are stored by a sweep.
   *
   * @returns when it is stored, given up, or `withinMs` have gone by.
   */
  close(exchange: OpenExchange, heard: CompletionResult, withinMs: number): Promise<void>
  /** Resolves when everything heard so far is stored, or after `withinMs`. */
  drain(withinMs: number): Promise<void>
}

type ExchangeBackend = {
  postgres: Postgres
  accept: AcceptWork
  embedders: Embedders
  usage: UsageWriter
  now: () => number
  log: Log
}

/** Rows are renewed this often; a sweep takes those that have not been for two minutes. */
const renewMs = 30_000
/** A day in which every store were away would fill the memory of the process. */
const closingMax = 1_000
const retryForMs = 600_000
const firstPauseMs = 250
const longestPauseMs = 15_000

/** The exchanges under way in this process. */
export function createOpenExchanges(backend: ExchangeBackend): OpenExchanges {
  const { postgres, log, now } = backend
  const open = new Set<string>()
  /** Of these, the ones that are being stored. */
  const answered = new Set<string>()
  const insert = batchLoader(
    (rows: NewOpenExchange[]) => insertOpenExchanges(postgres.query, rows, [...answered]),
    { lanes: 2, questionsMax: 100 },
  )
  const closing = new Set<Promise<void>>()
  let renewing: NodeJS.Timeout | undefined

  const renew = (): void => {
    if (open.size === 0) {
      clearInterval(renewing)
      renewing = undefined
      return
    }
    renewOpenExchanges(postgres.query, [...open]).catch((error: unknown) =>
      log.warn({ err: error, exchanges: open.size }, 'exchanges.not-renewed'),
    )
  }

  const store = async (exchange: OpenExchange, completion: CompletionResult): Promise<void> => {
    const { operation } = exchange
    const until = now() + retryForMs
    for (let pause = firstPauseMs; ; pause = Math.min(pause * 2, longestPauseMs)) {
      try {
        return await storeOnce(backend, exchange, completion)
      } catch (error) {
        if (now() > until || closing.size > closingMax) {
          return log.error({ err: error, operation }, 'exchange.answer-lost')
        }
        log.warn({ err: error, operation }, 'exchange.not-yet-stored')
        await delay(pause, null, { ref: false })
      }
    }
  }

  return {
    async open(exchange) {
      const at = now()
      const { operation, owner, session, embeddings, model, turn } = exchange
      const { expiresAt } = exchange
      const redaction = owner.row?.redaction ?? null
      const said = redactOrSkipTurns(redaction, parseStorableTurns(exchange.said)).map(turn => ({
        at,
        ...turn,
      }))
      const { account, keyHash, scope } = owner
      const ownerFields = { account, keyHash, vault: scope.vault, session }
      const isStored = await insert({
        operation,
        ...ownerFields,
        embeddings,
        model,
        said,
        ...(expiresAt !== undefined && { expiresAt }),
        ...(turn && said.length > 0 && { turn }),
      })
      open.add(operation)
      renewing ??= setInterval(renew, renewMs).unref()
      return { ...exchange, said: isStored ? [] : said }
    },

    async close(exchange, completion, withinMs) {
      if (!completion.unanswered) answered.add(exchange.operation)
      const stored = store(exchange, completion).finally(() => {
        open.delete(exchange.operation)
        answered.delete(exchange.operation)
        closing.delete(stored)
      })
      closing.add(stored)
      await waitAtMost(stored, withinMs)
    },

    drain: withinMs => waitAtMost(Promise.all(closing), withinMs),
  }
}

/** Waits for work that never fails, or until the time is over. */
async function waitAtMost(work: Promise<unknown>, ms: number): Promise<void> {
  const late = Promise.withResolvers<void>()
  const timer = setTimeout(late.resolve, ms)
  await Promise.race([work, late.promise])
  clearTimeout(timer)
}

/** Any number of runs store the exchange once. */
async function storeOnce(
  backend: ExchangeBackend,
  exchange: OpenExchange,
  completion: CompletionResult,
): Promise<void> {
  const { operation, owner, session, model, embeddings: space } = exchange
  if (completion.unanswered) await saveUnansweredTurns(backend.postgres.query, [operation])
  const turns = redactOrSkipTurns(
    owner.row?.redaction ?? null,
    parseAnswerTurns(completion, backend.now()),
  )
  const answer = turns.map(toMessage)
  const messages = [...exchange.said.map(toMessage), ...answer]
  const { inputTokens, outputTokens, recalledTokens } = completion
  const counted = { inputTokens, outputTokens, recalledTokens }
  if (messages.length === 0) {
    recordModelCall(backend, owner, { id: operation, kind: 'proxy', model, session, ...counted })
    return dropOpenExchanges(backend.postgres.query, [operation])
  }
  const { expiresAt } = exchange
  const common = { session, model, embeddings: undefined, awaited: false, expiresAt }
  const { closing } = await acceptExchange(backend, owner, {
    ...common,
    operation,
    messages,
    proxied: { ...counted, space, closes: true },
  })
  // This process was still for minutes, and what the user said has been stored without it.
  if (closing !== 'swept' || answer.length === 0) return
  await acceptExchange(backend, owner, {
    ...common,
    operation: copyIdOf(operation, 0, 'answer'),
    messages: answer,
    proxied: { ...counted, space, closes: false },
  })
}

const parseAnswerTurns = ({ text, interrupted }: CompletionResult, now: number): Turn[] =>
  parseStorableTurns([{ role: 'assistant', content: text ?? '', timestamp: now, interrupted }])

/** What is stored of messages: texts and placeholders, never the media themselves. */
const parseStorableTurns = (messages: readonly Message[]): Turn[] =>
  parseTurns(messages).map(({ text, speaker, ...turn }) => ({
    ...turn,
    text: sanitizeText(text),
    ...(speaker !== undefined && { speaker: sanitizeText(speaker) }),
  }))

const abandonedSeconds = 120
const abandonedMax = 500

/**
 * Stores what users have said to processes that died before the answer was heard; under the id of the
 * call, so that it is stored once whoever does it.
 *
 * @returns how many exchanges there were.
 */
export async function storeAbandoned(backend: ExchangeBackend): Promise<number> {
  const rows = await listAbandonedExchanges(backend.postgres.query, {
    seconds: abandonedSeconds,
    limit: abandonedMax,
  })
  const counted = { inputTokens: 0, outputTokens: 0, recalledTokens: 0 }
  const noCompletion = { text: null, interrupted: true, unanswered: true, ...counted }
  for (const { account, vault, keyHash, ...row } of rows) {
    const { operation } = row
    const exchange = { ...row, owner: { account, keyHash, scope: { vault } } }
    // One that cannot be stored, for now, holds up no other.
    await storeOnce(backend, exchange, noCompletion).catch((error: unknown) =>
      backend.log.warn({ err: error, operation }, 'exchange.not-yet-stored'),
    )
  }
  return rows.length
}
