import type { Log } from '#shared/core/log.ts'
import { lockVaults } from '#shared/operations/vault-locks.postgres.ts'
import type { Postgres, Query } from '#shared/storage/postgres/connect.ts'

export type UsageEvent = {
  id: string
  account: string
  vault: string
  keyHash: Buffer
  kind: string
  model?: string | null
  session?: string | null
  inputTokens?: number
  outputTokens?: number
  memoryTokens: number
}

export type UsageWriter = {
  /** Writes the bill of a read; the response does not wait for it. */
  record(event: UsageEvent): void
  /** Resolves when everything recorded so far is written or dropped, whatever is recorded meanwhile. */
  flush(): Promise<void>
}

/**
 * With more, the database has been out of reach for long: bills are dropped and counted, to bound
 * memory.
 */
const waitingMax = 10_000

/** Data exceptions, broken constraints and exceeded limits of rows: the same bill fails again. */
const refusedCodes = /^(22|23|54)/

/** From one statement to the next: many short calls in a row share one. */
const intervalMs = 20

/**
 * Bills of reads. One statement runs at a time and writes all bills that arrived since the one before, at most
 * every 20 ms; a bill that comes alone is sent to the database right after the response was sent to the client.
 * A bill that the database refuses, for a number out of range, is dropped; those beside it are written.
 * The commit is asynchronous: 0.4 ms instead of 1.2, at risk only when the database server itself
 * crashes.
 */
export function createUsageWriter(postgres: Postgres, log: Log): UsageWriter {
  let waiting: UsageEvent[] = []
  let writing: Promise<void> | null = null
  let dropped = 0
  let lastWriteAt = -Infinity
  let flushes = 0
  let endPause = (): void => {}
  let isInserting = false
  let inserted = Promise.withResolvers<void>()

  const pause = async (): Promise<void> => {
    // After this turn: the response is written to its socket first.
    await new Promise(setImmediate)
    const ms = lastWriteAt + intervalMs - performance.now()
    if (ms <= 0 || flushes > 0) return
    await new Promise<void>(resolve => {
      const timer = setTimeout(resolve, ms)
      endPause = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  const noteDropped = (events: number, error?: unknown): void => {
    if (events === 0) return
    dropped += events
    log.error({ dropped, ...(error !== undefined && { err: error }) }, 'usage.dropped')
  }

  /** @returns those that are to be tried again. */
  const insert = async (events: readonly UsageEvent[]): Promise<readonly UsageEvent[]> => {
    try {
      await insertUsageEvents(postgres, events)
      return []
    } catch (error) {
      if (!refusedCodes.test(String((error as { code?: unknown }).code))) {
        log.warn({ err: error, events: events.length }, 'usage.delayed')
        return events
      }
      if (events.length === 1) {
        noteDropped(1, error)
        return []
      }
      const half = events.length >> 1
      return [...(await insert(events.slice(0, half))), ...(await insert(events.slice(half)))]
    }
  }

  const write = async (): Promise<void> => {
    while (waiting.length > 0) {
      await pause()
      lastWriteAt = performance.now()
      const events = waiting
      waiting = []
      isInserting = true
      const unwritten = await insert(events)
      isInserting = false
      if (unwritten.length === 0) {
        inserted.resolve()
        inserted = Promise.withResolvers()
        continue
      }
      const room = Math.max(0, waitingMax - waiting.length)
      noteDropped(Math.max(0, unwritten.length - room))
      waiting = [...unwritten.slice(0, room), ...waiting]
      await new Promise(resolve => setTimeout(resolve, 1_000))
    }
    writing = null
  }

  return {
    record(event) {
      waiting.push(event)
      writing ??= write()
    },
    async flush() {
      flushes++
      endPause()
      // The statement that runs may lack some events, the next one has them; later ones have newer events alone.
      const isRunning = isInserting
      if (writing) await inserted.promise
      if (writing && isRunning) await inserted.promise
      flushes--
    },
  }
}

async function insertUsageEvents(postgres: Postgres, events: readonly UsageEvent[]): Promise<void> {
  const accounts = [...new Set(events.map(({ account }) => account))]
  // A statement that charges one account takes no second lock.
  if (accounts.length === 1) return insertAndCharge(postgres.query, events)
  await postgres.transaction(async tx => {
    await lockVaults(tx, [], accounts)
    await insertAndCharge(tx.query, events)
  })
}

async function insertAndCharge(query: Query, events: readonly UsageEvent[]): Promise<void> {
  await query(
    `with fast as (select set_config('synchronous_commit', 'off', true)), billed as (
     insert into usage_events (id, account, vault, key_hash, kind, model, session,
                               input_tokens, output_tokens, memory_tokens)
     select id, account, vault, decode(key_hash, 'hex'), kind, model, session,
            input_tokens, output_tokens, memory_tokens
     from jsonb_to_recordset($1::jsonb) as item(
       id uuid, account uuid, vault uuid, key_hash text, kind text, model text, session text,
       input_tokens int, output_tokens int, memory_tokens int), fast
     on conflict (id) do nothing returning account, memory_tokens
     )
     update accounts a set balance = balance - bill.tokens
     from (select account, sum(memory_tokens) tokens from billed group by account) bill
     where a.id = bill.account and a.balance is not null`,
    [JSON.stringify(events.map(usageItem))],
    'usage.insert',
  )
}

function usageItem(event: UsageEvent) {
  return {
    id: event.id,
    account: event.account,
    vault: event.vault,
    key_hash: event.keyHash.toString('hex'),
    kind: event.kind,
    model: event.model ?? null,
    session: event.session ?? null,
    input_tokens: event.inputTokens ?? 0,
    output_tokens: event.outputTokens ?? 0,
    memory_tokens: event.memoryTokens,
  }
}
