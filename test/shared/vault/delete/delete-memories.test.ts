import t from 'tap'
import type { Backend } from '#shared/backend.ts'
import { acceptDeletion, executeDeletion } from '#shared/vault/delete/delete-memories.ts'
import { acceptClearing } from '#shared/vault/delete/clear-vault.ts'
import { mintId } from '#shared/core/ids.ts'
import { buildKey } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import {
  resolveCaller,
  readDocuments,
  insertMemories,
} from '#test/support/start/insert-memories.ts'
import type { DeleteIdsJob } from '#shared/domain/job-payloads.ts'
import { setOperation } from '#test/support/checks/alter-jobs.ts'

const backend = await createTestBackend(t)

/** A vault of three memories, two of which are promised to go. */
async function promised() {
  const key = await buildKey(backend)
  const texts = ['stays where it is', 'goes first', 'goes second']
  const [, ...ids] = await insertMemories(
    backend,
    key,
    texts.map(text => ({ text, tokens: 10 })),
  )
  const caller = await resolveCaller(backend, key)
  const { vault, epoch } = caller.scope
  const job: DeleteIdsJob = { operation: mintId(), vault, epoch, ids }
  await acceptDeletion(backend, caller, { operation: job.operation, ids })
  return { key, caller, job }
}

async function standing({ key, job }: Awaited<ReturnType<typeof promised>>) {
  const { rows } = await backend.postgres.query(
    `select o.state, o.outcome, v.raw_units as units, v.raw_tokens::int as tokens, v.pending,
            (select array_agg(removed) from vault_changes c
             where c.vault = v.id and cardinality(c.removed) > 0) as removed
     from operations o join vaults v on v.id = o.vault where o.id = $1`,
    [job.operation],
  )
  const documents = await readDocuments(backend, key)
  return {
    ...rows[0],
    fields: documents.map(row => Object.keys(row).length),
    bill: await readBillNow(job.operation),
  }
}

/** Undefined as long as nothing is billed. */
const readBillNow = async (operation: string): Promise<number | undefined> =>
  (
    await backend.postgres.query<{ tokens: number }>(
      'select memory_tokens as tokens from usage_events where id = $1',
      [operation],
    )
  ).rows[0]?.tokens

const settled = ({ job }: Awaited<ReturnType<typeof promised>>) => ({
  state: 'done',
  outcome: { kind: 'delete-ids', requested: 2, deleted: 2, failed: [] },
  units: 1,
  tokens: 10,
  pending: 0,
  removed: [job.ids],
  bill: 20,
})

/** The collection, with one call of a method replaced. */
function mongoWith(
  call: 'updateMany' | 'deleteMany',
  nth: number,
  instead: (filter: object, change: object) => Promise<unknown>,
): Pick<Backend, 'mongo'> {
  let calls = 0
  const memories = new Proxy(backend.mongo.memories, {
    get(target, name) {
      const own = Reflect.get(target, name) as unknown
      if (typeof own !== 'function') return own
      if (name === call && ++calls === nth) return instead
      return own.bind(target) as unknown
    },
  })
  return { mongo: { ...backend.mongo, memories } }
}

const killed = () => Promise.reject(new Error('killed'))

t.test('killed after the memories went, before it is settled: the next run settles it', async t => {
  const case_ = await promised()
  let transactions = 0
  const transaction: typeof backend.postgres.transaction = work =>
    ++transactions === 2 ? killed() : backend.postgres.transaction(work)
  const dying = { ...backend.postgres, transaction }
  await t.rejects(executeDeletion({ ...backend, postgres: dying }, case_.job), {
    message: 'killed',
  })
  const [, ...tombstones] = await readDocuments(backend, case_.key)
  t.notOk(
    tombstones.some(
      tombstone => 'text' in tombstone || 'vectors' in tombstone || 'epoch' in tombstone,
    ),
  )
  await executeDeletion(backend, case_.job)
  t.match(await standing(case_), settled(case_))
})

t.test('killed after it is settled: the next run leaves tombstones, nothing twice', async t => {
  const case_ = await promised()
  const dying = { ...backend, ...mongoWith('updateMany', 2, killed) }
  await t.rejects(executeDeletion(dying, case_.job), { message: 'killed' })
  t.match(await standing(case_), settled(case_))
  await executeDeletion(backend, case_.job)
  await executeDeletion(backend, case_.job)
  const { fields, ...rest } = await standing(case_)
  t.match(rest, settled(case_))
  t.same(fields.slice(1), [4, 4])
})

t.test('killed before anything: the next run does it all', async t => {
  const case_ = await promised()
  const dying = { ...backend, ...mongoWith('updateMany', 1, killed) }
  await t.rejects(executeDeletion(dying, case_.job), { message: 'killed' })
  t.match(await standing(case_), { state: 'running', units: 3 })
  await executeDeletion(backend, case_.job)
  t.match(await standing(case_), settled(case_))
})

t.test('eight workers at once settle it once', async t => {
  const case_ = await promised()
  await Promise.all(Array.from({ length: 8 }, () => executeDeletion(backend, case_.job)))
  t.match(await standing(case_), settled(case_))
})

t.test('what the store did not confirm has failed, is kept, and may be tried again', async t => {
  const case_ = await promised()
  const [first, second] = case_.job.ids
  const half = {
    ...backend,
    ...mongoWith('updateMany', 1, (filter, change) =>
      backend.mongo.memories.updateMany({ ...filter, _id: first! }, change),
    ),
  }
  await executeDeletion(half, case_.job)
  t.match(await standing(case_), {
    outcome: { requested: 2, deleted: 1, failed: [second] },
    units: 2,
    bill: 10,
  })
  const operation = mintId()
  await acceptDeletion(backend, case_.caller, { operation, ids: [second!] })
  await executeDeletion(backend, { ...case_.job, operation, ids: [second!] })
  t.match(await standing(case_), { units: 1, tokens: 10 })
})

t.test('a redelivered ingest does not bring a deleted memory back', async t => {
  const case_ = await promised()
  await executeDeletion(backend, case_.job)
  const { vault, epoch } = case_.caller.scope
  const embedder = await backend.embedders.get()
  const [vector] = await embedder.embedTexts(['goes first'])
  const row = {
    id: case_.job.ids[0]!,
    tier: 1 as const,
    role: 'user' as const,
    text: 'goes first',
    at: Date.now(),
    tokens: 10,
    vault,
    epoch,
    session: null,
    sessionEpoch: 0,
    operation: mintId(),
    vector: vector!,
  }
  for (let run = 0; run < 200; run++) await backend.memories.add([row], embedder.space)
  const [, tombstone] = await readDocuments(backend, case_.key)
  t.notOk('text' in tombstone!)
})

t.test('the vault is cleared in between: the debt of what came later is left alone', async t => {
  const case_ = await promised()
  const clearing = { operation: mintId(), session: null, reset: false, awaited: false }
  await acceptClearing(backend, case_.caller, clearing)
  await insertMemories(backend, case_.key, [{ text: 'said afterwards', tokens: 7 }])
  await executeDeletion(backend, case_.job)
  t.match(await standing(case_), { state: 'done', units: 1, tokens: 7 })
})

t.test('cancelled before it began: nothing goes', async t => {
  const case_ = await promised()
  await setOperation(backend, case_.job.operation, { state: 'cancelled' })
  await executeDeletion(backend, case_.job)
  t.equal((await readDocuments(backend, case_.key)).filter(row => 'text' in row).length, 3)
})

t.test('accepting the same operation again promises nothing more', async t => {
  const case_ = await promised()
  const { operation, ids, vault } = case_.job
  await acceptDeletion(backend, case_.caller, { operation, ids })
  const { rows } = await backend.postgres.query(
    `select pending, (select count(*)::int from pgboss.job where data->>'operation' = $2) as jobs
     from vaults where id = $1`,
    [vault, operation],
  )
  t.same(rows, [{ pending: 1, jobs: 1 }])
})
