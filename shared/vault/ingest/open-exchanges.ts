import { setTimeout as delay } from 'node:timers/promises'
import { batchLoader } from '#shared/core/batch-loader.ts'
import { toLargeJson } from '#shared/core/canonical-json.ts'
import { withTimeout } from '#shared/core/with-timeout.ts'
import type { Message, Turn } from '#shared/domain/message-content.ts'
import {
  insertOpenExchanges,
  renewOpenExchanges,
  type ExchangeRow,
  endTurns,
  listAbandonedExchanges,
  dropOpenExchanges,
  saveUnansweredTurns,
  dropSteps,
  saveStep,
} from '#shared/vault/ingest/open-exchanges.postgres.ts'
import { redactOrSkipTurnsInThread } from '#shared/vault/ingest/text-thread.ts'
import { recordModelCall } from '#shared/billing/meter.ts'
import { copyIdOf } from '#shared/core/ids.ts'
import { parseTurns, sentMessageContent, toReadTurns } from '#shared/domain/turn/conversation.ts'
import type { ExchangeResult, OpenExchange } from '#shared/vault/ingest/exchange.ts'
import { acceptCall, type IngestWriter } from '#shared/vault/ingest/ingest.ts'
import { toMessage, redactOrSkipTurns } from '#shared/privacy/apply-redaction.ts'
import { sanitizeText } from '#shared/core/sanitize-text.ts'
import type { Postgres, Query } from '#shared/storage/postgres/connect.ts'
import type { Log } from '#shared/core/log.ts'
import type { UsageWriter } from '#shared/billing/usage-writer.ts'

/** Rows are renewed this often; `storeAbandoned` takes those older than two minutes. */
const renewMs = 30_000
/** Exchanges that may wait for an unreachable store. */
const closingMax = 1_000
const retryForMs = 600_000
const firstPauseMs = 250
const longestPauseMs = 15_000

/** Characters of a repeated turn that are held while the model answers. */
const repeatedMax = 10_000

/** A model call about to be made. */
type ExchangeToOpen = Omit<OpenExchange, 'userTurns' | 'storesReply' | 'repeated'> & {
  /** The user's messages of the turn that a call continues, in case no call before it brought them. */
  userMessages: readonly Message[]
  /** 32-byte hash of what the user says in the turn, of whatever history. */
  words?: Buffer | undefined
  /**
   * What may be stored of the whole turn, if its reply is stored only with it; absent: the reply is stored
   * anyway.
   */
  storable?: readonly Message[] | undefined
  /** Turns before it without a final reply, and how many of `userMessages` each repeats. */
  unansweredBefore?: readonly { turn: Buffer; messages: number }[]
}

/** The model calls under way in this process. */
export class OpenExchanges {
  readonly #backend: ExchangeBackend
  /** Ids of operations. */
  readonly #open = new Set<string>()
  /** The answered ones among them: they are being stored. */
  readonly #answered = new Set<string>()
  readonly #closing = new Set<Promise<void>>()
  readonly #insert: (row: ExchangeRow) => Promise<boolean>
  #renewTimer: NodeJS.Timeout | undefined

  constructor(backend: ExchangeBackend) {
    this.#backend = backend
    const { query } = backend.postgres
    this.#insert = batchLoader(
      (rows: ExchangeRow[]) => insertOpenExchanges(query, rows, [...this.#answered]),
      { concurrency: 2, batchMax: 100 },
    )
  }

  /**
   * Writes the user's turns to Postgres before the model is called: from then on they are stored, even when this
   * process dies.
   *
   * @throws Refusal `unavailable` when the database is out of reach.
   */
  async open(exchange: ExchangeToOpen): Promise<OpenExchange> {
    const at = this.#backend.now()
    const {
      operation,
      owner,
      session,
      embeddings,
      model,
      turn,
      words,
      isContinuation = false,
      expiresAt,
      shares,
      metadata,
      storable,
    } = exchange
    const toStored = (messages: readonly Message[]): Promise<readonly Turn[]> =>
      redactOrSkipTurnsInThread(owner.keyRow?.redaction ?? null, toStorableTurns(messages))
    const storedBefore = await this.#endEarlierTurns(exchange)
    const storedTurns = await toStored(exchange.userMessages.slice(storedBefore))
    const userTurns = storedTurns.map(userTurn => ({ at, ...userTurn }))
    const textLength = userTurns.reduce((sum, { text }) => sum + text.length, 0)
    const isStored = await this.#insert({
      operation,
      account: owner.account,
      keyHash: owner.keyHash,
      vault: owner.scope.vault,
      session,
      embeddings,
      model,
      userTurns: await toLargeJson(userTurns, textLength),
      expiresAt,
      shares,
      metadata,
      ...(userTurns.length > 0 && {
        turn,
        words,
        isContinuation: turn !== undefined && isContinuation,
      }),
    })
    this.#open.add(operation)
    this.#renewTimer ??= setInterval(() => this.#renew(), renewMs).unref()
    const storesReply = storable === undefined || (await toStored(storable)).length > 0
    if (!isStored) return { ...exchange, userTurns, storesReply }
    const repeated = userTurns
      .map(({ text }) => text)
      .join('\n\n')
      .slice(0, repeatedMax)
    return { ...exchange, userTurns: [], repeated, storesReply }
  }

  /** @returns how many of the messages were stored with earlier calls. */
  async #endEarlierTurns({ owner, unansweredBefore = [] }: ExchangeToOpen): Promise<number> {
    if (unansweredBefore.length === 0) return 0
    const turns = unansweredBefore.map(({ turn }) => turn)
    const { vault } = owner.scope
    const stored = await endTurns(this.#backend.postgres.query, { vault, turns })
    const last = unansweredBefore.findLast(({ turn }) => stored.some(known => known.equals(turn)))
    return last?.messages ?? 0
  }

  /**
   * Stores user and answer as one exchange, in place of the row written by `open`. Retries for ten minutes while
   * a store is out of reach; after that, a sweep stores the user's turns alone.
   *
   * @returns when it is stored or given up, or after `withinMs`.
   */
  async close(exchange: OpenExchange, completion: ExchangeResult, withinMs: number): Promise<void> {
    const { operation } = exchange
    if (!completion.unanswered) this.#answered.add(operation)
    const stored = this.#storeWithRetries(exchange, completion).finally(() => {
      this.#open.delete(operation)
      this.#answered.delete(operation)
      this.#closing.delete(stored)
    })
    this.#closing.add(stored)
    await withTimeout(stored, withinMs, () => undefined)
  }

  /** Resolves when everything closed so far is stored, or after `withinMs`. */
  async drain(withinMs: number): Promise<void> {
    await withTimeout(Promise.all(this.#closing), withinMs, () => undefined)
  }

  #renew(): void {
    const { postgres, log } = this.#backend
    if (this.#open.size === 0) {
      clearInterval(this.#renewTimer)
      this.#renewTimer = undefined
      return
    }
    renewOpenExchanges(postgres.query, [...this.#open]).catch((error: unknown) =>
      log.warn({ err: error, exchanges: this.#open.size }, 'exchanges.not-renewed'),
    )
  }

  /** Never rejects. */
  async #storeWithRetries(exchange: OpenExchange, completion: ExchangeResult): Promise<void> {
    const { log, now } = this.#backend
    const { operation } = exchange
    const until = now() + retryForMs
    for (let pause = firstPauseMs; ; pause = Math.min(pause * 2, longestPauseMs)) {
      try {
        return await storeExchange(this.#backend, exchange, completion)
      } catch (error) {
        if (now() > until || this.#closing.size > closingMax) {
          return log.error({ err: error, operation }, 'exchange.answer-lost')
        }
        log.warn({ err: error, operation }, 'exchange.not-yet-stored')
        await delay(pause, null, { ref: false })
      }
    }
  }
}

type ExchangeBackend = {
  postgres: Postgres
  ingest: IngestWriter
  usage: UsageWriter
  now: () => number
  log: Log
}

/** Stores user and answer as one exchange, and closes the open one; any number of runs store it once. */
async function storeExchange(
  backend: ExchangeBackend,
  exchange: OpenExchange,
  completion: ExchangeResult,
): Promise<void> {
  const { operation, owner, session, model } = exchange
  const { query } = backend.postgres
  if (completion.unanswered) await saveUnansweredTurns(query, [operation])
  const reply = redactOrSkipTurns(
    owner.keyRow?.redaction ?? null,
    exchange.storesReply === false ? [] : parseAnswerTurns(exchange, completion, backend.now()),
  )
  const isStep = completion.isStep === true && exchange.turn !== undefined
  if (isStep && reply.length > 0) await keepStep(query, exchange, reply)
  const answer = isStep ? [] : reply.map(toMessage)
  const endsLoop = exchange.isContinuation && !isStep && !completion.unanswered
  const answeredTurn = endsLoop ? exchange.turn : undefined
  const closing = await acceptCall(backend, exchange, {
    messages: [...exchange.userTurns.map(toMessage), ...answer],
    result: completion,
    closes: true,
    answeredTurn,
  })
  if (closing === undefined) {
    const { inputTokens, cachedTokens, outputTokens, recalledTokens } = completion
    const usage = { inputTokens, cachedTokens, outputTokens, recalledTokens }
    recordModelCall(backend, owner, { id: operation, kind: 'proxy', model, session, ...usage })
    if (answeredTurn) await dropSteps(query, owner.scope.vault, answeredTurn)
    return dropOpenExchanges(query, [operation])
  }
  // This process stalled for minutes; a sweep has stored the user's turns without the answer.
  if (closing !== 'swept' || answer.length === 0) return
  const late = { ...exchange, operation: copyIdOf(operation, 0, 'answer') }
  await acceptCall(backend, late, { messages: answer, result: completion, closes: false })
}

/** Keeps the text of a step in case no other call of its turn follows. */
const keepStep = (
  query: Query,
  { operation: call, owner, turn }: OpenExchange,
  userTurns: readonly Turn[],
): Promise<void> =>
  saveStep(query, {
    vault: owner.scope.vault,
    turn: turn!,
    operation: copyIdOf(call, 0, 'step'),
    call,
    userTurns,
  })

function parseAnswerTurns(
  { verbatim }: OpenExchange,
  { text, interrupted }: ExchangeResult,
  now: number,
): Turn[] {
  const content = verbatim ? sentMessageContent(text ?? '') : (text ?? '')
  const message = { role: 'assistant', content, timestamp: now, interrupted }
  return (verbatim ? toReadTurns([message]) : parseTurns([message])).map(sanitizeTurn)
}

/** Characters from which on a text is sanitized only where it is decoded: 18 MB take up to 40 ms. */
const longTextMin = 256 * 1024

/** The turns of messages that were read, as stored: texts, and placeholders in place of media. */
const toStorableTurns = (messages: readonly Message[]): Turn[] =>
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
 * Stores the user turns of calls whose process died before their answer, once, under the operation of the call.
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
  // Those that cannot be stored now wait behind the others.
  if (failed.length > 0) await renewOpenExchanges(backend.postgres.query, failed)
  return rows.length
}
