import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import type { Backend } from '#shared/backend.ts'
import { hashKey } from '#shared/access/key.ts'

/** The exchanges a client has sent, each with a unique text. */
export type ExchangeJournal = {
  acknowledged: Set<string>
  /** Without an answer or refused: stored at most once. */
  unacknowledged: Set<string>
  /** Number of answers by status; 0 is a broken connection. */
  statuses: Map<number, number>
  /** Stops sending and waits for pending answers. */
  stop(): Promise<void>
}

/**
 * Sends exchanges over a few connections until it is stopped, and records what was accepted.
 *
 * @param base returns the current URL; a restarted process has another one.
 * @param options.perSecond exchanges that are begun in a second at most, by all lanes together
 */
export function sendExchanges(
  base: () => string,
  key: string,
  {
    lanes = 4,
    wait = false,
    pauseMs = 0,
    perSecond,
  }: { lanes?: number; wait?: boolean; pauseMs?: number; perSecond?: number } = {},
): ExchangeJournal {
  const acknowledged = new Set<string>()
  const unacknowledgedTexts = new Set<string>()
  const statuses = new Map<number, number>()
  const stopping = new AbortController()
  const startedAt = Date.now()
  let sent = 0

  const lane = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      if (perSecond !== undefined && sent >= ((Date.now() - startedAt) / 1_000) * perSecond) {
        await delay(5)
        continue
      }
      const content = `exchange ${++sent} of ${key.slice(-6)}`
      unacknowledgedTexts.add(content)
      const status = await fetch(`${base()}/v1/memory/ingest${wait ? '?wait=true' : ''}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-memory-key': key },
        body: JSON.stringify({ messages: [{ role: 'user', content }] }),
        signal: AbortSignal.timeout(60_000),
      }).then(
        async response => (await response.text(), response.status),
        () => 0,
      )
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      if (status === 200 || status === 202) {
        unacknowledgedTexts.delete(content)
        acknowledged.add(content)
      }
      const restMs = status === 0 || status >= 500 ? 150 : pauseMs
      if (restMs > 0) await delay(restMs)
    }
  }
  const lanesDone = Promise.all(Array.from({ length: lanes }, lane))
  return {
    acknowledged,
    unacknowledged: unacknowledgedTexts,
    statuses,
    async stop() {
      stopping.abort()
      await lanesDone
    },
  }
}

/** Waits until no operation is open. @returns milliseconds. */
export async function waitUntilSettled({ postgres }: Backend, withinMs = 180_000): Promise<number> {
  const startedAt = Date.now()
  for (;;) {
    const { rows } = await postgres.query<{ n: number }>(
      `select count(*)::int n from operations where state in ('accepted', 'running')`,
    )
    const { n } = rows[0]!
    if (n === 0) return Date.now() - startedAt
    if (Date.now() - startedAt > withinMs) {
      const jobs = JSON.stringify(await unfinishedJobs(postgres), null, 1)
      throw new Error(`${n} unsettled after ${withinMs} ms; their jobs: ${jobs}`)
    }
    await delay(50)
  }
}

/** By queue, state and error: how many jobs there are, with the times of the first to run. */
async function unfinishedJobs(postgres: Backend['postgres']): Promise<unknown[]> {
  const { rows } = await postgres.query(
    `select name, state, output->>'message' error, count(*)::int n, max(retry_count)::int tries,
            min(start_after) due, min(started_on) started, max(heartbeat_on) heartbeat, now()
     from pgboss.job where state <> 'completed' and name not like '\\_\\_%' group by 1, 2, 3`,
  )
  return rows
}

/**
 * Checks the stores against a journal: each acknowledged exchange is stored once, others at most once,
 * each has one done operation and one usage event, and there are no dead letters.
 */
export async function checkJournal(
  t: Test,
  { postgres, mongo, config }: Backend,
  key: string,
  { acknowledged, unacknowledged }: Pick<ExchangeJournal, 'acknowledged' | 'unacknowledged'>,
): Promise<void> {
  const { rows } = await postgres.query<{ vault: string }>(
    'select vault from memory_keys where hash = $1',
    [hashKey(config.keyPepper, key)],
  )
  const { vault } = rows[0]!
  const documents = await mongo.memories.find({ vault }).toArray()
  const times = new Map<string, number>()
  for (const { text } of documents) times.set(text, (times.get(text) ?? 0) + 1)

  t.same(
    [...acknowledged].filter(text => !times.has(text)),
    [],
    'nothing acknowledged is lost',
  )
  t.same(
    [...times].filter(([, count]) => count > 1),
    [],
    'nothing is doubled',
  )
  const unsentTexts = [...times.keys()].filter(
    text => !acknowledged.has(text) && !unacknowledged.has(text),
  )
  t.same(unsentTexts, [], 'nothing is stored that was not sent')

  const { rows: books } = await postgres.query<Record<string, number>>(
    `select count(*)::int operations, count(*) filter (where o.state = 'done')::int done,
            count(u.id)::int billed, (select pending from vaults where id = $1) pending,
            (select count(*)::int from usage_events where vault = $1 and kind = 'ingest') bills
     from operations o left join usage_events u using (id) where o.vault = $1`,
    [vault],
  )
  const n = documents.length
  t.same(books, [{ operations: n, done: n, billed: n, pending: 0, bills: n }], 'the books agree')
  const { rows: dead } = await postgres.query(`select id from pgboss.job where name like '%.dead'`)
  t.same(dead, [], 'no job was given up')
}
