import { setTimeout as delay } from 'node:timers/promises'
import { batchLoader } from '#shared/core/batch-loader.ts'
import { withTimeout } from '#shared/core/with-timeout.ts'
import type { Message } from '#shared/domain/message-content.ts'
import { redactOrSkipTurns } from '#shared/privacy/apply-redaction.ts'
import {
  parseStorableTurns,
  storeExchange,
  type CompletionResult,
  type ExchangeBackend,
  type OpenExchange,
} from '#shared/vault/ingest/open-exchange.ts'
import {
  insertOpenExchanges,
  renewOpenExchanges,
  type NewOpenExchange,
} from '#shared/vault/ingest/open-exchanges.postgres.ts'

/** Rows are renewed this often; `storeAbandoned` takes those that were not for two minutes. */
const renewMs = 30_000
/** Exchanges that may wait for an unreachable store; a day's worth would fill the process's memory. */
const closingMax = 1_000
const retryForMs = 600_000
const firstPauseMs = 250
const longestPauseMs = 15_000

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
  async open(
    exchange: Omit<OpenExchange, 'said'> & { said: readonly Message[] },
  ): Promise<OpenExchange> {
    const at = this.#backend.now()
    const { operation, owner, session, embeddings, model, turn, expiresAt } = exchange
    const redaction = owner.keyRow?.redaction ?? null
    const said = redactOrSkipTurns(redaction, parseStorableTurns(exchange.said)).map(userTurn => ({
      at,
      ...userTurn,
    }))
    const isStored = await this.#insert({
      operation,
      account: owner.account,
      keyHash: owner.keyHash,
      vault: owner.scope.vault,
      session,
      embeddings,
      model,
      said,
      ...(expiresAt !== undefined && { expiresAt }),
      ...(turn && said.length > 0 && { turn }),
    })
    this.#open.add(operation)
    this.#renewTimer ??= setInterval(() => this.#renew(), renewMs).unref()
    return { ...exchange, said: isStored ? [] : said }
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
