import t from 'tap'
import type { Backend } from '#shared/backend.ts'
import { acceptAndDelete } from '#shared/vault/delete/delete-memories.ts'
import { mintId } from '#shared/core/ids.ts'
import { storeAccepted } from '#shared/vault/ingest/store-accepted.ts'
import { applyCommit } from '#shared/vault/consolidate/apply-commit.ts'
import { reflectionDebt } from '#shared/vault/consolidate/debt.ts'
import { buildKey, createTestClient, startTestApi } from '#test/support/start/api.ts'
import { checkOut, commit } from '#test/support/start/consolidation.ts'
import {
  resolveCaller,
  readDocuments,
  insertMemories,
} from '#test/support/start/insert-memories.ts'
import { jobData } from '#test/support/checks/observe-jobs.ts'
import type { IngestJob, CommitJob } from '#shared/domain/job-payloads.ts'
import { startService } from '#test/support/start/start-service.ts'

// What happens between writing to the one store and settling in the other, by hand: nobody takes jobs.
const { backend, base } = await startService(t, { jobs: [] })
const { query } = backend.postgres

async function newVault() {
  const key = await buildKey(backend)
  const client = createTestClient(base, key)
  const remove = async (...ids: string[]) => {
    const caller = await resolveCaller(backend, key)
    t.ok(await acceptAndDelete(backend, caller, { operation: mintId(), ids }))
  }
  const debt = async () => reflectionDebt((await resolveCaller(backend, key)).keyRow)
  const ids = async (): Promise<string[]> =>
    (await readDocuments(backend, key)).filter(({ tomb_at }) => !tomb_at).map(({ _id }) => _id)
  return { key, client, remove, debt, ids }
}

const nothing = {
  raw: { units: 0, tokens: 0, importance: 0 },
  tier2: { count: 0, importance: 0, tokens: 0 },
  suggestion: null,
}

/** Accepts an exchange and stores it; `happens` after it is written and before it is settled. */
async function told(client: ReturnType<typeof createTestClient>, happens: () => Promise<unknown>) {
  const { body } = await client.post('/v1/memory/ingest', {
    messages: [{ role: 'user', content: 'the ferry leaves at nine' }],
  })
  const job = await jobData<IngestJob>(backend, body.operation_id)
  // Settling is a transaction that locks the vault first.
  let isSettling = false
  const pausing: Backend['postgres']['transaction'] = async work => {
    if (!isSettling) {
      isSettling = true
      await happens()
    }
    return backend.postgres.transaction(work)
  }
  const paused = { ...backend, postgres: { ...backend.postgres, transaction: pausing } }
  await storeAccepted(paused, [job], { again: false })
}

t.test('deleted before it is settled, a memory leaves no debt', async t => {
  const { client, remove, debt, ids } = await newVault()
  let between
  await told(client, async () => {
    await remove(...(await ids()))
    between = await debt()
  })
  t.same(between, nothing, 'nobody is shown less than nothing')
  t.same(await debt(), nothing)
})

t.test('nor does one that is consolidated before it is settled', async t => {
  const { client, debt } = await newVault()
  await told(client, async () => {
    const { body } = await checkOut(client)
    await commit(client, body.batch_id, [{ text: 'They take the ferry.', importance: 3 }])
  })
  t.match(await debt(), { raw: { units: 0, tokens: 0 }, tier2: { count: 1, importance: 3 } })
})

/** A batch of two memories whose commit died between marking its sources and settling. */
async function diedWhileCommitting() {
  const vault = await newVault()
  await insertMemories(backend, vault.key, [
    { text: 'a source that goes', tokens: 10 },
    { text: 'a source that stays', tokens: 20 },
  ])
  const [gone] = await vault.ids()
  const { body } = await checkOut(vault.client)
  const entries = [{ text: 'Some go, some stay.', importance: 2 }]
  const dying = {
    ...backend,
    postgres: {
      ...backend.postgres,
      transaction: work =>
        backend.postgres.transaction(tx =>
          work({
            query: (text, values, name) =>
              name === 'leases.settle'
                ? Promise.reject(new Error('killed'))
                : tx.query(text, values, name),
            commit() {},
          }),
        ),
    } satisfies Backend['postgres'],
  }
  const { status } = await commit(await startTestApi(t, dying, vault.key), body.batch_id, entries)
  t.equal(status, 200, 'it is committed, and its job goes on')
  const { rows } = await query<{ data: CommitJob }>(
    `select data from pgboss.job where name = 'commit-apply' and data->>'batch' = $1`,
    [body.batch_id],
  )
  const finish = () => applyCommit(backend, rows[0]!.data)
  return { ...vault, gone: gone!, finish }
}

t.test('a source deleted after a commit marked it and died is not owed for ever', async t => {
  const { gone, remove, debt, finish } = await diedWhileCommitting()
  t.match(await debt(), { raw: { units: 2, tokens: 30 } })
  await remove(gone)
  t.match(await debt(), { raw: { units: 1, tokens: 20 } })
  t.equal(await finish(), 1)
  t.match(await debt(), { raw: { units: 0, tokens: 0 }, tier2: { count: 1 } })
})

t.test('deleted after the commit is settled, it costs the debt nothing', async t => {
  const { gone, remove, debt, finish } = await diedWhileCommitting()
  t.equal(await finish(), 2)
  await remove(gone)
  t.match(await debt(), { raw: { units: 0, tokens: 0 }, tier2: { count: 1 } })
})

t.test('deletions and commits at once: the debt is what is left', async t => {
  const { key, client, remove, debt } = await newVault()
  for (let round = 0; round < 6; round++) {
    const ids = await insertMemories(
      backend,
      key,
      Array.from({ length: 8 }, (_, n) => ({ text: `round ${round}, note ${n}`, tokens: 5 })),
    )
    const { body } = await checkOut(client)
    const entries = [{ text: `Round ${round} was played.`, importance: 1 }]
    await Promise.all([
      commit(client, body.batch_id, entries),
      remove(...ids.slice(0, 3)),
      remove(...ids.slice(2, 5)),
    ])
    t.match(await debt(), { raw: { units: 0, tokens: 0 }, tier2: { count: round + 1 } })
  }
})
