import { setTimeout as delay } from 'node:timers/promises'
import { batchLoader } from '#shared/core/batch-loader.ts'
import { toLargeJson } from '#shared/core/json-bytes.ts'
import { withTimeout } from '#shared/core/with-timeout.ts'
import type { Message, Turn } from '#shared/domain/message-content.ts'
import {
  storeExchange,
  toStorableTurns,
  type CompletionResult,
  type ExchangeBackend,
  type OpenExchange,
} from '#shared/vault/ingest/open-exchange.ts'
import {
  insertOpenExchanges,
  renewOpenExchanges,
  type NewOpenExchange,
} from '#shared/vault/ingest/open-exchanges.postgres.ts'
import { redactOrSkipTurnsAside } from '#shared/vault/ingest/text-thread.ts'
import { endTurns } from '#shared/vault/ingest/steps.postgres.ts'

/** Rows are renewed this often; `storeAbandoned` takes those that were not for two minutes. */
const renewMs = 30_000
/** Exchanges that may wait for an unreachable store; a day's worth would fill the process's memory. */
const closingMax = 1_000
const retryForMs = 600_000
const firstPauseMs = 250
const longestPauseMs = 15_000

/** A model call about to be made. */
export type NewExchange = Omit<OpenExchange, 'said' | 'storesReply'> & {
  /** As they were read; of a call that continues a turn those of the turn, in case no call before it brought them. */
  said: readonly Message[]
  /** 32-byte hash of what the user says in the turn, of whatever history. */
  words?: Buffer | undefined
  /** What may be stored of the whole turn, where its reply is stored only with it; absent: the reply is stored anyway. */
  storable?: readonly Message[] | undefined
  /** Turns before it without a final reply, and how many of `said` each repeats. */
  unansweredBefore?: readonly { turn: Buffer; messages: number }[]
}

/** The model calls under way in this process. */
export class OpenExchanges {
  readonly #backend: ExchangeBackend
  /** Ids of operations. */
  readonly #open = new Set<string>()
  /** Of these, the answered ones: they are being stored. */
  readonly #answered = new Set<string>()
  readonly #closing = new Set<Promise<void>>()
  readonly #insert: (row: NewOpenExchange) => Promise<boolean>
  #renewTimer: NodeJS.Timeout | undefined

  constructor(backend: ExchangeBackend) {
    this.#backend = backend
    const { query } = backend.postgres
    this.#insert = batchLoader(
      (rows: NewOpenExchange[]) => insertOpenExchanges(query, rows, [...this.#answered]),
      { concurrency: 2, batchMax: 100 },
    )
  }

  /**
   * Writes the user's turns to Postgres before the model is called: from then on they are stored, even
   * when this process dies.
   *
   * @throws Refusal `unavailable` when the database is out of reach.
   */
  async open(exchange: NewExchange): Promise<OpenExchange> {
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
      redactOrSkipTurnsAside(owner.keyRow?.redaction ?? null, toStorableTurns(messages))
    const repeated = await this.#endEarlierTurns(exchange)
    const storedTurns = await toStored(exchange.said.slice(repeated))
    const said = storedTurns.map(userTurn => ({ at, ...userTurn }))
    const textLength = said.reduce((sum, { text }) => sum + text.length, 0)
    const isStored = await this.#insert({
      operation,
      account: owner.account,
      keyHash: owner.keyHash,
      vault: owner.scope.vault,
      session,
      embeddings,
      model,
      said: await toLargeJson(said, textLength),
      ...(expiresAt !== undefined && { expiresAt }),
      ...(shares !== undefined && { shares }),
      ...(metadata && { metadata }),
      ...(turn && said.length > 0 && { turn, isContinuation }),
      ...(words && said.length > 0 && { words }),
    })
    this.#open.add(operation)
    this.#renewTimer ??= setInterval(() => this.#renew(), renewMs).unref()
    const storesReply = storable === undefined || (await toStored(storable)).length > 0
    return { ...exchange, said: isStored ? [] : said, storesReply }
  }

  /** @returns how many of the messages were stored with earlier calls. */
  async #endEarlierTurns({ owner, unansweredBefore = [] }: NewExchange): Promise<number> {
    if (unansweredBefore.length === 0) return 0
    const turns = unansweredBefore.map(({ turn }) => turn)
    const { vault } = owner.scope
    const stored = await endTurns(this.#backend.postgres.query, { vault, turns })
    const last = unansweredBefore.findLast(({ turn }) => stored.some(known => known.equals(turn)))
    return last?.messages ?? 0
  }

  /**
   * Stores user and answer as one exchange, in place of the row written by `open`. While a store is out
   * of reach it retries for ten minutes; after that, a sweep stores the user's turns alone.
   *
   * @returns when it is stored or given up, or after `withinMs`.
   */
  async close(
    exchange: OpenExchange,
    completion: CompletionResult,
    withinMs: number,
  ): Promise<void> {
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
  async #storeWithRetries(exchange: OpenExchange, completion: CompletionResult): Promise<void> {
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
