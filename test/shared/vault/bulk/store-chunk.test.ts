import fc from 'fast-check'
import t from 'tap'
import type { Backend } from '#shared/backend.ts'
import { storeChunk } from '#shared/vault/bulk/store-chunk.ts'
import { mintId } from '#shared/core/ids.ts'
import { hashKey } from '#shared/access/key.ts'
import { findKey } from '#shared/access/key-row.postgres.ts'
import { cancelFileOfOperation } from '#shared/vault/bulk/files.postgres.ts'
import { raiseEpoch, raiseSessionEpoch } from '#shared/vault/base/vaults.postgres.ts'
import { countTokens } from '#shared/core/tokens.ts'
import { buildKey, createTestClient } from '#test/support/start/api.ts'
import type { StepJob } from '#shared/domain/job-payloads.ts'
import { startService } from '#test/support/start/start-service.ts'

// Nobody takes jobs here: each run of one is made by hand, so that it can end where we want it to.
const { backend, base } = await startService(t, { jobs: [] })
const at = 1_700_000_000_000

const newVault = async () => {
  const key = await buildKey(backend)
  const client = createTestClient(base, key)
  const row = () => findKey(backend.postgres.query, hashKey(backend.config.keyPepper, key))
  const { vault } = (await row())!
  const send = async (path: string, lines: readonly object[]) => {
    const { status, body } = await client.send('POST', path, {
      body: lines.map(line => JSON.stringify(line)).join('\n'),
      headers: { 'content-type': 'application/x-ndjson', prefer: 'respond-async' },
    })
    if (status !== 202) throw new Error(`${status}`)
    return body.operation_id as string
  }
  return {
    vault,
    row: async () => (await row())!,
    send,
    upload: (lines: readonly object[]) => send('/v1/memory/upload', lines),
    outcome: async (operation: string) =>
      (await client.get(`/v1/operations/${operation}`)).body.outcome?.body,
    state: async (operation: string) =>
      (await client.get(`/v1/operations/${operation}`)).body.state as string,
    texts: async (): Promise<string[]> =>
      (await client.get('/v1/memory/export')).body.map(
        ({ content }: { content: string }) => content,
      ),
  }
}

/** The jobs of an operation as they wait in the queue. */
async function jobsOf(operation: string): Promise<StepJob[]> {
  const { rows } = await backend.postgres.query<{ data: StepJob }>(
    `select data from pgboss.job where data->>'operation' = $1 order by id`,
    [operation],
  )
  return rows.map(({ data }) => data)
}

/** Runs every job, also those that others promise, until the operation has ended. */
async function finish(operation: string, service: Backend = backend): Promise<void> {
  for (let runs = 0; runs < 50; runs++) {
    for (const job of await jobsOf(operation)) await storeChunk(service, job)
    const { rows } = await backend.postgres.query(
      `select 1 from operations where id = $1 and state in ('accepted', 'running')`,
      [operation],
    )
    if (rows.length === 0) return
  }
  throw new Error('the operation does not end')
}

class Died extends Error {}

type Point = 'plan' | 'some' | 'inserted' | 'replaced' | 'settling' | 'settled'

/** The same backend, whose run ends at a point as if its process had died there. */
function dyingAt(point: Point): Backend {
  const { mongo, postgres } = backend
  const memories = new Proxy(mongo.memories, {
    get(target, name) {
      const value = Reflect.get(target, name) as unknown
      if (name === 'insertMany' && (point === 'some' || point === 'inserted')) {
        return async (documents: object[], options: object) => {
          const some = point === 'some' ? documents.slice(0, documents.length / 2) : documents
          await target.insertMany(some as never, options)
          throw new Died()
        }
      }
      if (name === 'bulkWrite' && point === 'replaced') {
        return async (changes: never, options: object) => {
          await target.bulkWrite(changes, options)
          throw new Died()
        }
      }
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
  const query: Backend['postgres']['query'] = async (text, values, name) => {
    const result = await postgres.query(text, values, name)
    if (point === 'plan' && name === 'steps.plan') throw new Died()
    return result as never
  }
  return {
    ...backend,
    mongo: { ...mongo, memories },
    postgres: {
      ...postgres,
      query,
      async transaction(work) {
        const result = await postgres.transaction(async tx => {
          const done = await work(tx)
          if (point === 'settling') throw new Died()
          return done
        })
        if (point === 'settled') throw new Died()
        return result
      },
    },
  }
}

/** Whether the run ended at the point, and not by itself. */
async function dies(service: Backend, job: StepJob): Promise<boolean> {
  try {
    await storeChunk(service, job)
    return false
  } catch (error) {
    if (error instanceof Died) return true
    throw error
  }
}

const linesOf = (count: number, from = 0) =>
  Array.from({ length: count }, (_, n) => ({
    content: `memory number ${from + n}`,
    timestamp: at + from + n,
  }))
const tokensIn = (lines: readonly { content: string }[]): number =>
  lines.reduce((sum, { content }) => sum + countTokens(content), 0)
const countsOf = async (vault: Awaited<ReturnType<typeof newVault>>, operation: string) => {
  const outcome = await vault.outcome(operation)
  return outcome.stats ?? outcome
}
const billed = async (vault: string): Promise<unknown[]> =>
  (
    await backend.postgres.query(
      'select id, memory_tokens as tokens from usage_events where vault = $1 order by id',
      [vault],
    )
  ).rows

for (const point of ['plan', 'some', 'inserted', 'settling', 'settled'] as const) {
  t.test(`upload: a run that dies at "${point}" is made good by the next`, async t => {
    const vault = await newVault()
    const lines = linesOf(430)
    const operation = await vault.upload(lines)
    for (const job of await jobsOf(operation)) {
      t.ok(await dies(dyingAt(point), job))
      // A second run may get further than the first, and then dies there or not at all.
      await dies(dyingAt(point), job)
    }
    await finish(operation)
    t.match((await vault.outcome(operation)).stats, { memories: 430, stored: 430, skipped: 0 })
    t.same((await vault.texts()).sort(), lines.map(({ content }) => content).sort())
    const { rawUnits, rawTokens } = await vault.row()
    t.same([rawUnits, rawTokens], [430, tokensIn(lines)])
    t.same(await billed(vault.vault), [{ id: operation, tokens: tokensIn(lines) }])
    const left = await backend.postgres.query('select 1 from long_operations where vault = $1', [
      vault.vault,
    ])
    t.same(left.rows, [])
  })
}

const exportLine = (n: number, rest: object = {}) => ({
  id: mintId(),
  tier: 1,
  role: 'user',
  content: `memory number ${n}`,
  timestamp: at + n,
  session_id: null,
  ...rest,
})

for (const point of ['plan', 'inserted', 'replaced', 'settling', 'settled'] as const) {
  t.test(`import: a run that dies at "${point}" is made good by the next`, async t => {
    const vault = await newVault()
    const old = Array.from({ length: 60 }, (_, n) => exportLine(n))
    await finish(await vault.send('/v1/memory/import', old))
    const lines = [
      ...old.map(line => ({ ...line, content: `${line.content}, told anew`, consolidated: true })),
      ...Array.from({ length: 220 }, (_, n) => exportLine(100 + n)),
    ]
    const operation = await vault.send('/v1/memory/import?on_conflict=replace', lines)
    const done = new Set<number>()
    let deaths = 0
    while ((await vault.state(operation)) !== 'done') {
      for (const job of await jobsOf(operation)) {
        if (!done.has(job.n) && (await dies(dyingAt(point), job))) deaths++
        await storeChunk(backend, job)
        done.add(job.n)
      }
    }
    t.ok(deaths > 0)
    t.match(await vault.outcome(operation), { imported: 220, replaced: 60, skipped: 0 })
    t.same((await vault.texts()).sort(), lines.map(({ content }) => content).sort())
    const { rawUnits, rawTokens } = await vault.row()
    t.same([rawUnits, rawTokens], [220, tokensIn(lines.slice(60))], 'replaced ones are covered now')
    t.equal((await billed(vault.vault)).length, 2)
  })
}

t.test('chunks in any order, several times and side by side, count once', async t => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 640 }),
      fc.array(fc.array(fc.nat(3), { minLength: 1, maxLength: 4 }), { maxLength: 4 }),
      async (count, rounds) => {
        const vault = await newVault()
        const lines = linesOf(count)
        const operation = await vault.upload(lines)
        const jobs = await jobsOf(operation)
        for (const round of rounds) {
          const chosen = round.flatMap(n => jobs[n] ?? [])
          await Promise.all(chosen.map(job => storeChunk(backend, job)))
        }
        await finish(operation)
        const { rawUnits } = await vault.row()
        const { stats } = await vault.outcome(operation)
        const texts = await vault.texts()
        const bills = await billed(vault.vault)
        return (
          [rawUnits, stats.stored, texts.length].every(figure => figure === count) &&
          JSON.stringify(bills) === JSON.stringify([{ id: operation, tokens: tokensIn(lines) }])
        )
      },
    ),
    { numRuns: 12 },
  )
  t.pass('twelve files')
})

for (const path of ['/v1/memory/upload', '/v1/memory/import']) {
  t.test(`${path}: what another file stores while a run is dead counts once`, async t => {
    const vault = await newVault()
    const ids = Array.from({ length: 30 }, () => mintId())
    const lines = linesOf(30).map((line, n) =>
      path.includes('import') ? { ...line, ...exportLine(n), id: ids[n]! } : line,
    )
    const first = await vault.send(path, lines.slice(0, 20))
    const [job] = await jobsOf(first)
    t.ok(await dies(dyingAt('plan'), job!))
    const second = await vault.send(path, lines)
    await finish(second)
    await finish(first)
    const { stored, imported, skipped } = await countsOf(vault, first)
    t.same([stored ?? imported, skipped], [0, 20])
    const { rawUnits, rawTokens } = await vault.row()
    t.same([rawUnits, rawTokens], [30, tokensIn(lines)])
    const tokens = (await billed(vault.vault)).map(bill => (bill as { tokens: number }).tokens)
    const sum = tokens.reduce((sum, of) => sum + of, 0)
    t.equal(sum, tokensIn(lines))
  })
}

t.test('what is deleted while a run is dead does not come back', async t => {
  const vault = await newVault()
  const operation = await vault.upload(linesOf(20))
  const [job] = await jobsOf(operation)
  t.ok(await dies(dyingAt('inserted'), job!))
  await backend.mongo.memories.updateMany(
    { vault: { $eq: vault.vault }, text: { $eq: 'memory number 7' } },
    [{ $replaceRoot: { newRoot: { _id: '$_id', vault: '$vault', tomb_at: '$$NOW' } } }],
  )
  await finish(operation)
  const texts = await vault.texts()
  t.equal(texts.length, 19)
  t.notOk(texts.includes('memory number 7'))
})

t.test('a vault that is cleared meanwhile stays empty, and the operation ends', async t => {
  const vault = await newVault()
  const lines = linesOf(450)
  const operation = await vault.upload(lines)
  const [first] = await jobsOf(operation)
  await storeChunk(backend, first!)
  await backend.postgres.transaction(tx => raiseEpoch(tx, vault.vault))
  await finish(operation)
  t.equal(await vault.state(operation), 'done')
  t.match((await vault.outcome(operation)).stats, { memories: 450, stored: 200 })
  const stored = { id: operation, tokens: tokensIn(lines.slice(0, 200)) }
  t.same(await billed(vault.vault), [stored], 'what never was visible is not billed')
  t.same(await vault.texts(), [])
  t.equal((await vault.row()).rawUnits, 0)
  const late = await backend.mongo.memories.countDocuments({
    vault: { $eq: vault.vault },
    operation: { $eq: operation },
  })
  t.equal(late, 200, 'of what came after the clearing nothing is left; the rest is the sweep’s')
})

const { postgres } = backend
const clear = (vault: string) => postgres.transaction(tx => raiseEpoch(tx, vault))
const clearTrip = (vault: string) =>
  postgres.transaction(tx => raiseSessionEpoch(tx, vault, 'trip'))
const cancel = async (vault: string, operation: string) => {
  const { rows } = await postgres.query<{ account: string }>(
    `select account from operations where vault = $1`,
    [vault],
  )
  if (!(await cancelFileOfOperation(postgres.query, rows[0]!.account, operation))) throw new Error()
}

for (const [when, path, end] of [
  ['its vault was cleared', '/v1/memory/upload', clear],
  ['its session was cleared', '/v1/memory/upload?session_id=trip', clearTrip],
  ['its vault was cleared', '/v1/memory/import', clear],
  ['a session of its lines was cleared', '/v1/memory/import', clearTrip],
  ['its operation was cancelled', '/v1/memory/upload', cancel],
] as const) {
  t.test(`${path}: a file sent again after ${when} is stored anew`, async t => {
    const vault = await newVault()
    const inTrip = { id: mintId(), tier: 1, role: 'user', session_id: 'trip' }
    const lines = linesOf(3).map(line =>
      path.includes('import') ? { ...line, ...inTrip, id: mintId() } : line,
    )
    const first = await vault.send(path, lines)
    await postgres.transaction(tx => raiseSessionEpoch(tx, vault.vault, 'another'))
    t.equal(await vault.send(path, lines), first, 'under way it is joined')
    await end(vault.vault, first)
    const second = await vault.send(path, lines)
    t.not(second, first)
    t.equal(await vault.send(path, lines), second)
    await finish(first)
    await finish(second)
    const texts = lines.map(({ content }) => content)
    t.same(await vault.texts(), texts)
  })
}

t.test('a job whose file was erased has nothing to do', async t => {
  const vault = await newVault()
  const operation = await vault.upload(linesOf(3))
  const [job] = await jobsOf(operation)
  await backend.postgres.query('delete from long_operations where vault = $1', [vault.vault])
  t.same(await storeChunk(backend, job!), { state: 'nothing-left' })
  t.same(await vault.texts(), [])
})
