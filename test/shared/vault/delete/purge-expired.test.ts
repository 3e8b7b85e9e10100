import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import type { Backend } from '#shared/backend.ts'
import { executeDeletion } from '#shared/vault/delete/delete-memories.ts'
import { purgeAllExpired } from '#shared/vault/delete/purge-expired.ts'
import { storeAccepted } from '#shared/vault/ingest/store-accepted.ts'
import { sweepAll } from '#workers/sweep-all.ts'
import { buildKey, createTestClient } from '#test/support/start/api.ts'
import { jobData } from '#test/support/checks/observe-jobs.ts'
import { readVaultScope } from '#test/support/checks/stored-memories.ts'
import { resolveCaller, readDocuments } from '#test/support/start/insert-memories.ts'
import type { IngestJob, DeleteIdsJob } from '#shared/domain/job-payloads.ts'
import { startService } from '#test/support/start/start-service.ts'

// What happens between one step and the next, by hand: nobody takes jobs.
const { backend, base } = await startService(t, { jobs: [] })
const { query } = backend.postgres

type Vault = Awaited<ReturnType<typeof newVault>>

async function newVault() {
  const key = await buildKey(backend)
  const client = createTestClient(base, key)
  const { vault } = await readVaultScope(backend, key)
  const debt = async () => {
    const { rawUnits, rawTokens } = (await resolveCaller(backend, key)).keyRow
    return [rawUnits, rawTokens]
  }
  const texts = async () =>
    (await readDocuments(backend, key)).flatMap(({ text }) => (text === undefined ? [] : [text]))
  const listed = async () => {
    const { status, body } = await client.get('/v1/memory/list')
    if (status !== 200) throw new Error(`${status}: ${JSON.stringify(body)}`)
    return (body.items as { text: string }[]).map(row => row.text)
  }
  const nextExpiry = async () =>
    (
      await query<{ at: Date | null }>('select next_expiry as at from vaults where id = $1', [
        vault,
      ])
    ).rows[0]!.at?.getTime()
  const operations = async () =>
    (await client.get('/v1/operations?kind=expire')).body.items as { operation_id: string }[]
  return { key, client, vault, debt, texts, listed, nextExpiry, operations }
}

const hour = 3_600_000
/** A moment so many hours ahead. */
const inHours = (hours: number): string => new Date(Date.now() + hours * hour).toISOString()

/** Two hours go by for a vault, and for jobs that are to store into it: what is to end comes so much nearer. */
async function letHoursPass({ vault }: Vault, ...jobs: IngestJob[]): Promise<void> {
  for (const memory of jobs.flatMap(({ memories }) => memories)) {
    if (memory.expiresAt !== undefined) memory.expiresAt -= 2 * hour
  }
  await backend.mongo.memories.updateMany({ vault, expires_at: { $exists: true } }, [
    { $set: { expires_at: { $subtract: ['$expires_at', 2 * hour] } } },
  ])
  await query(`update vaults set next_expiry = next_expiry - interval '2 hours' where id = $1`, [
    vault,
  ])
  await query(
    `update announced_expiries set expires_at = expires_at - interval '2 hours' where vault = $1`,
    [vault],
  )
}

/** Promises an exchange. @returns the job that is to store it. */
async function promised(
  { client }: Vault,
  said: string | string[],
  end?: string,
  headers: Record<string, string> = {},
): Promise<IngestJob> {
  const messages = [said].flat().map(content => ({ role: 'user', content }))
  const asked = { messages, ...(end && { expires_at: end }) }
  const { body } = await client.post('/v1/memory/ingest', asked, headers)
  return jobData(backend, body.operation_id)
}

const store = (job: IngestJob, again = false): Promise<unknown> =>
  storeAccepted(backend, [job], { again })

/** The backend, where something happens before each statement of a name. */
function beforeStatement(name: string, happens: () => Promise<unknown>): Backend {
  const pausing =
    (run: Backend['postgres']['query']): Backend['postgres']['query'] =>
    async (text, values, named) => {
      if (named === name) await happens()
      return run(text, values, named)
    }
  const { postgres } = backend
  return {
    ...backend,
    postgres: {
      ...postgres,
      query: pausing(postgres.query),
      transaction: work =>
        postgres.transaction(tx => work({ query: pausing(tx.query), commit() {} })),
    },
  }
}

/** The backend, whose process dies at a statement of a name. */
const dyingAt = (name: string): Backend =>
  beforeStatement(name, () => Promise.reject(new Error('killed')))

/** The backend, where something happens once, before the transaction that settles: it locks the vault. */
function beforeSettling(happens: () => Promise<unknown>): Backend {
  const { postgres } = backend
  let hasHappened = false
  return {
    ...backend,
    postgres: {
      ...postgres,
      async transaction(work) {
        if (!hasHappened) {
          hasHappened = true
          await happens()
        }
        return postgres.transaction(work)
      },
    },
  }
}

t.test('what comes to its end between writing and settling is not seen, nor owed', async t => {
  const mine = await newVault()
  // The first of all waits for whatever else is to be opened.
  const job = await promised(mine, 'the ferry leaves at nine', inHours(1))
  let between
  const paused = beforeSettling(async () => {
    await letHoursPass(mine, job)
    between = await mine.listed()
  })
  await storeAccepted(paused, [job], { again: false })
  t.same(between, [])
  t.same(await mine.listed(), [])
  t.same(await mine.debt(), [0, 0])
  t.same(await mine.texts(), [])
  t.equal((await mine.operations()).length, 1)
})

t.test('a worker that dies before it settles hides no end', async t => {
  const mine = await newVault()
  const at = inHours(1)
  const job = await promised(mine, 'the ferry is late', at)
  const storing = storeAccepted(dyingAt('operations.settle'), [job], { again: false })
  await t.rejects(storing, { message: 'killed' })
  t.equal(await mine.nextExpiry(), Date.parse(at))
  await letHoursPass(mine, job)
  t.same(await mine.listed(), [], 'nobody has settled it')
  await store(job, true)
  t.same(await mine.listed(), [])
  t.same(await mine.debt(), [0, 0])
})

t.test('over before it could be stored, it never is; however often that is tried', async t => {
  const mine = await newVault()
  const job = await promised(mine, 'too late', inHours(1))
  await letHoursPass(mine, job)
  await store(job)
  await store(job, true)
  t.same(await mine.texts(), [])
  t.same(await mine.debt(), [0, 0])
  t.same(await mine.listed(), [])
  const [tombstone] = await readDocuments(backend, mine.key)
  t.same(Object.keys(tombstone!).toSorted(), ['_id', 'tomb_at', 'tomb_epoch', 'vault'])
  const { body } = await mine.client.get(`/v1/operations/${job.operation}`)
  t.equal(body.state, 'done')
})

t.test('part of it written in time, the rest too late: what was written is counted', async t => {
  const mine = await newVault()
  const at = inHours(1)
  const job = await promised(mine, ['one', 'two'], at)
  const half = { ...job, memories: job.memories.slice(0, 1) }
  const storing = storeAccepted(dyingAt('operations.settle'), [half], { again: false })
  await t.rejects(storing, { message: 'killed' })
  await letHoursPass(mine, job)
  t.same(await mine.listed(), [])
  await store(job, true)
  t.same(await mine.debt(), [0, 0])
  t.same(await mine.texts(), [])
})

/** A vault in which something has come to its end, and something else is about to be stored. */
async function lookedAt() {
  const mine = await newVault()
  const [first, second] = [inHours(1), inHours(3)]
  await store(await promised(mine, 'over first', first))
  const later = await promised(mine, 'over next', second)
  await letHoursPass(mine, later)
  return { mine, second: Date.parse(second) - 2 * hour, later }
}

/** Between the look at what is there and saying when the next is over: the third time it is held. */
const duringLook = (happens: () => Promise<unknown>): Backend => {
  let held = 0
  return beforeStatement('vaults.lock', async () => (++held === 3 ? happens() : undefined))
}

t.test('what is stored while the next end is looked for is not missed', async t => {
  const { mine, second, later } = await lookedAt()
  const during = duringLook(() => store(later))
  await purgeAllExpired(during, mine.vault)
  t.same(await mine.texts(), ['over next'])
  t.equal(await mine.nextExpiry(), second)
  await letHoursPass(mine, later)
  t.same(await mine.listed(), [])
})

t.test('nor what is being written then, and is settled later', async t => {
  const { mine, second, later } = await lookedAt()
  const settling = Promise.withResolvers<void>()
  const written = Promise.withResolvers<void>()
  const pausing = beforeSettling(() => {
    written.resolve()
    return settling.promise
  })
  let storing: Promise<unknown> | undefined
  const paused = duringLook(() => {
    storing = storeAccepted(pausing, [later], { again: false })
    return written.promise
  })
  await purgeAllExpired(paused, mine.vault)
  t.equal(await mine.nextExpiry(), second, 'announced')
  await letHoursPass(mine, later)
  t.same(await mine.listed(), [], 'and not yet settled')
  settling.resolve()
  await storing
  t.same(await mine.listed(), [])
  t.same(await mine.debt(), [0, 0])
})

t.test('nor what begins to be written when it is about to be said', async t => {
  const { mine, second, later } = await lookedAt()
  let stored: Promise<unknown> | undefined
  // The vault is held by this very transaction: whoever writes has to wait, and goes on beside.
  const paused = beforeStatement('expiries.put', async () => {
    stored ??= store(later)
    await delay(100)
  })
  await purgeAllExpired(paused, mine.vault)
  await stored!
  t.equal(await mine.nextExpiry(), second)
})

t.test('a removal whose process died is finished by the next request', async t => {
  const mine = await newVault()
  await store(await promised(mine, 'buried', inHours(1)))
  await store(await promised(mine, 'stays'))
  await letHoursPass(mine)
  for (const name of ['erasures.standing', 'vaults.change']) {
    await t.rejects(purgeAllExpired(dyingAt(name), mine.vault), { message: 'killed' })
    t.match((await resolveCaller(backend, mine.key)).keyRow, { hasExpired: true })
  }
  t.same(await mine.listed(), ['stays'])
  const [operation, ...others] = await mine.operations()
  t.same(others, [], 'under the operation that was promised')
  t.match(operation, { state: 'done', outcome: { body: { expired: 1 } } })
  t.match(await mine.debt(), [1, Number])
  const job = await jobData<DeleteIdsJob>(backend, operation!.operation_id)
  await executeDeletion(backend, job)
  t.match(await mine.debt(), [1, Number], 'its job finds nothing left to do')
})

t.test('a memory that was given more time while it was about to go stays', async t => {
  const mine = await newVault()
  await store(await promised(mine, 'one more day', inHours(1)))
  const [document] = await readDocuments(backend, mine.key)
  await letHoursPass(mine)
  // Not by an edit, which comes too late by now: by a clock that differs.
  const paused = beforeStatement('erasures.standing', () =>
    backend.mongo.memories.updateOne(
      { vault: mine.vault, _id: document!._id },
      { $set: { expires_at: new Date(Date.now() + 3_600_000) } },
    ),
  )
  await purgeAllExpired(paused, mine.vault)
  t.same(await mine.texts(), ['one more day'])
  t.match(await mine.debt(), [1, Number])
})

t.test('a vault without requests is swept', async t => {
  const mine = await newVault()
  await store(await promised(mine, 'swept away', inHours(1)))
  await letHoursPass(mine)
  const { expiredMemories = 0 } = await sweepAll(backend)
  t.ok(expiredMemories >= 1)
  t.same(await mine.texts(), [])
  t.equal(await mine.nextExpiry(), undefined)
})

t.test('what was cleared has no end any more', async t => {
  const mine = await newVault()
  await store(await promised(mine, 'cleared first', inHours(1)))
  const headers = { prefer: 'respond-async' }
  t.equal((await mine.client.send('DELETE', '/v1/memory', { headers })).status, 202)
  await letHoursPass(mine)
  t.same(await mine.listed(), [])
  t.same(await mine.operations(), [])
  t.equal(await mine.nextExpiry(), undefined)
})

t.test('in a session that was cleared it goes, and is due no longer', async t => {
  const mine = await newVault()
  const inSession = { 'x-session-id': 's' }
  await store(await promised(mine, 'said there', inHours(1), inSession))
  const headers = { ...inSession, prefer: 'respond-async' }
  await mine.client.send('DELETE', '/v1/memory', { headers })
  await letHoursPass(mine)
  t.same(await mine.listed(), [])
  t.same(await mine.texts(), [])
  t.equal(await mine.nextExpiry(), undefined)
})
