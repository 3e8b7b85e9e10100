import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { Config } from '#shared/core/config.ts'
import { buildKey, createTestClient } from '#test/support/start/api.ts'
import { createTestBackend, createTestConfig } from '#test/support/start/backend.ts'
import {
  checkJournal,
  sendExchanges,
  waitUntilSettled,
} from '#test/support/checks/exchange-journal.ts'
import {
  electionErrors,
  startMongoDouble,
  type MongoDouble,
} from '#test/support/doubles/mongo-double.ts'
import { startWeb, startWorker } from '#test/support/start/processes.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

t.setTimeout(0)

/**
 * `ELECTION_SECONDS=60` runs longer, with 100 exchanges a second (`ELECTION_RATE`) and the reads and edits beside them;
 * the results are in test/README.md.
 */
const seconds = Number(process.env['ELECTION_SECONDS'] ?? 5)
const perSecond = Number(process.env['ELECTION_RATE'] ?? 100)
/**
 * A primary serves for a second, then there is none: for as long as the driver waits for one, and for
 * longer.
 */
const servingMs = 1_000
const electionsMs = [700, 3_000]

/** What an election does to commands: refused, cut off before they run, executed without an answer. */
function stepDown(double: MongoDouble): () => void {
  const { hello } = double
  const { primary: _, ...withoutPrimary } = hello
  let count = 0
  double.rule = () => {
    const n = count++ % (electionErrors.length + 2)
    return electionErrors[n] ?? (n === electionErrors.length ? 'cut' : 'lose-reply')
  }
  // The first commands meet a server that still believes it is primary; then it says it is none.
  double.hello = {
    ...withoutPrimary,
    isWritablePrimary: false,
    ismaster: false,
    secondary: true,
  }
  return () => {
    double.hello = hello
    double.rule = () => undefined
  }
}

type Edited = { acknowledged: string; possible: Set<string>; statuses: Map<number, number> }

/** Edits one memory again and again; its text is the last acknowledged one or a later one. */
async function editUntil(
  stopped: () => boolean,
  base: string,
  key: string,
  id: string,
): Promise<Edited> {
  const client = createTestClient(base, key)
  const edited: Edited = { acknowledged: '', possible: new Set(), statuses: new Map() }
  for (let n = 0; !stopped(); n++) {
    const text = `edit ${n} of ${id}`
    edited.possible.add(text)
    const { status } = await client.post('/v1/memory/edit', { memory_id: id, text })
    edited.statuses.set(status, (edited.statuses.get(status) ?? 0) + 1)
    if (status === 200) {
      edited.acknowledged = text
      edited.possible = new Set([text])
    }
    await delay(100)
  }
  return edited
}

const brokenOff = { status: 200, body: null, headers: new Headers() }

/** Reads until it is stopped. @returns how often each status was answered. */
async function readUntil(
  stopped: () => boolean,
  base: string,
  key: string,
): Promise<Map<number, number>> {
  const client = createTestClient(base, key)
  const statuses = new Map<number, number>()
  const reads = [
    () => client.get('/v1/memory/list'),
    () => client.post('/v1/memory/search', { query: 'exchange', limit: 3 }),
    () => client.get('/v1/memory/stats'),
    // One that has begun cannot become a 503: its connection breaks.
    () => client.get('/v1/memory/export').catch(() => brokenOff),
  ]
  for (let n = 0; !stopped(); n++) {
    const { status, body, headers } = await reads[n % reads.length]!()
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
    if (status === 503) {
      t.match(body, { error: String })
      t.match(headers.get('retry-after'), /^\d+$/)
    }
    await delay(50)
  }
  return statuses
}

const through = async (t: Test, config: Config): Promise<[MongoDouble, Config]> => {
  const double = await startMongoDouble(t, {
    engine: config.mongodbUri,
    options: '?replicaSet=rs',
  })
  return [double, { ...config, mongodbUri: double.url }]
}

t.test('a primary steps down under load: 503 at worst, nothing lost, nothing doubled', async t => {
  t.setTimeout(300_000 + seconds * 1_000)
  const real = await createTestConfig(t)
  const backend = await createTestBackend(t, { config: real })
  const [double, config] = await through(t, real)
  const [waiting, promising, editing] = await Promise.all([1, 2, 3].map(() => buildKey(backend)))
  const [web, otherWeb] = await Promise.all([
    startWeb(t, config),
    startWeb(t, config),
    startWorker(t, config),
    startWorker(t, config),
  ])
  const bases = [web.base, otherWeb.base]
  let asked = 0
  const eitherBase = () => bases[asked++ % bases.length]!
  const editor = createTestClient(web.base, editing)
  const first = { messages: [{ role: 'user', content: 'edit me' }] }
  t.equal((await editor.post('/v1/memory/ingest?wait=true', first)).status, 200)
  const { body: listed } = await editor.get('/v1/memory/list')
  const id: string = listed.items[0].memory_id

  let stopped = false
  const isStopped = () => stopped
  const stored = sendExchanges(eitherBase, waiting!, { lanes: 4, wait: true })
  const load = seconds > 5 ? { lanes: 24, perSecond } : { lanes: 4, pauseMs: 20 }
  const promised = sendExchanges(eitherBase, promising!, load)
  const reading = Promise.all(
    [waiting, promising].map((key, index) => readUntil(isStopped, bases[index]!, key!)),
  )
  const edits = editUntil(isStopped, web.base, editing!, id)

  const startedAt = Date.now()
  let elections = 0
  while (elections < 2 || Date.now() - startedAt < seconds * 1_000) {
    const before = stored.acknowledged.size
    await waitUntil('it stores', () => stored.acknowledged.size > before + 3)
    await delay(servingMs)
    const elected = stepDown(double)
    await delay(electionsMs[elections % electionsMs.length])
    elected()
    elections++
  }
  stopped = true
  const [[...reads], edited] = await Promise.all([reading, edits, stored.stop(), promised.stop()])
  const loadMs = Date.now() - startedAt
  await waitUntilSettled(backend, 60_000 + seconds * 1_000)

  const counts = [stored.statuses, promised.statuses, edited.statuses, ...reads]
  for (const statuses of counts) {
    const others = [...statuses.keys()].filter(status => ![200, 202, 503].includes(status))
    t.same(others, [], JSON.stringify([...statuses]))
  }
  t.same(
    [...promised.statuses.keys()],
    [202],
    'what needs Postgres alone was accepted all the time',
  )
  await checkJournal(t, backend, waiting!, stored)
  await checkJournal(t, backend, promising!, promised)
  const { body: after } = await editor.get('/v1/memory/list')
  t.ok(edited.possible.has(after.items[0].text), 'no acknowledged edit is lost')
  const total = counts.flatMap(statuses => [...statuses.values()]).reduce((a, b) => a + b, 0)
  t.comment(
    `${elections} elections, ${total} requests in ${loadMs} ms ` +
      `(${((1_000 * total) / loadMs).toFixed(0)} a second), ` +
      JSON.stringify(counts.map(statuses => [...statuses])),
  )
  t.match(
    web.output() + otherWeb.output(),
    /"cause":\{"type":"Mongo\w+".*request\.unavailable/,
    'the cause is logged',
  )
})
