import fc from 'fast-check'
import t from 'tap'
import type { Test } from 'tap'
import { acceptCopy, resolveDestination } from '#shared/vault/copy/accept.ts'
import { copyChunk } from '#shared/vault/copy/chunk.ts'
import { transferCandidates } from '#shared/vault/copy/candidates.ts'
import type { Backend } from '#shared/backend.ts'
import { presentOperation } from '#api/present/operation.ts'
import { mintId } from '#shared/core/ids.ts'
import { findStep } from '#shared/operations/operation-steps.postgres.ts'
import type { StepJob } from '#shared/domain/job-payloads.ts'
import type { CopyChunk } from '#shared/vault/copy/settle-chunk.ts'
import { revokeKey } from '#shared/access/memory-keys.postgres.ts'
import { findOperation } from '#shared/operations/operation-rows.postgres.ts'
import { raiseEpoch, raiseSessionEpoch } from '#shared/vault/base/vaults.postgres.ts'
import { jobHandlers } from '#workers/handlers.ts'
import { buildKey } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { startFaultProxy } from '#test/support/doubles/fault-proxy.ts'
import { holdRow, untilWaiting } from '#test/support/checks/held-rows.ts'
import {
  resolveCaller,
  readDocuments,
  insertMemories,
} from '#test/support/start/insert-memories.ts'
import { cutUpdates, removeDocuments } from '#test/support/checks/alter.ts'
import { vaultRow } from '#test/support/checks/observe.ts'

/** Nobody takes jobs on this one: its chunks wait for the test. */
const still = await createTestBackend(t)
const gate = await startFaultProxy(t, still.config.mongodbUri)
const gated = await createTestBackend(t, { config: { ...still.config, mongodbUri: gate.url } })

/** A copy that is promised, its chunks still waiting. */
async function promised(source: string, destination: string) {
  const caller = await resolveCaller(still, source)
  const embedder = await still.embedders.get()
  const memories = await transferCandidates(still, caller, embedder)
  const operation = mintId()
  const copy = {
    operation,
    kind: 'transfer' as const,
    destination: await resolveDestination(still, caller, destination),
    model: embedder.model,
    ids: memories.map(({ id }) => id),
    graftQuery: null,
    awaited: false,
  }
  await acceptCopy(still, caller, copy)
  const outcome = async () => {
    const row = await findOperation(still.postgres.query, caller.account, operation)
    return row && presentOperation(row).outcome
  }
  return {
    operation,
    caller,
    copy,
    outcome,
    chunk: (n: number) => ({ operation, vault: copy.destination.vault, n }),
  }
}

const manyFacts = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ text: `fact ${n}` }))

t.test('a chunk that ran twice, and twice at once, is counted once', async t => {
  const [source, destination] = [await buildKey(still), await buildKey(still)]
  await insertMemories(still, source, manyFacts(700))
  const { chunk, outcome, copy, caller } = await promised(source, destination)
  await acceptCopy(still, caller, copy)
  await Promise.all([0, 0, 0, 1, 1].map(n => copyChunk(still, chunk(n))))
  await copyChunk(still, chunk(0))
  t.match(await outcome(), { status: 200, body: { copied: 700, deduped_or_skipped: 0 } })
  t.equal((await readDocuments(still, destination)).length, 700)
  t.equal((await resolveCaller(still, destination)).keyRow.rawUnits, 700)
  t.equal((await resolveCaller(still, source)).keyRow.rawUnits, 700)
  t.equal((await vaultRow(still, caller.scope.vault)).pending, 0)
})

/** Cuts every copy off after it has written and before that is settled, until restored. */
const cutOff = () => cutUpdates(still, 'operation_steps')

t.test(
  'killed between writing and settling, the next run counts what is there as copied',
  async t => {
    const [source, destination] = [await buildKey(still), await buildKey(still)]
    await insertMemories(still, source, [...manyFacts(20), { text: 'fact 3' }])
    const { chunk, outcome } = await promised(source, destination)
    const { restore } = await cutOff()
    await t.rejects(copyChunk(still, chunk(0)), { message: 'cut' })
    await restore()
    t.equal((await readDocuments(still, destination)).length, 20)
    t.equal((await resolveCaller(still, destination)).keyRow.rawUnits, 0)
    await copyChunk(still, chunk(0))
    t.match(await outcome(), { status: 200, body: { copied: 20, deduped_or_skipped: 1 } })
    t.equal((await readDocuments(still, destination)).length, 20)
    t.equal((await resolveCaller(still, destination)).keyRow.rawUnits, 20)
  },
)

t.test(
  'any copies in any order, cut off and repeated: the union of the texts, each once',
  async t => {
    const text = fc.constantFrom('yes', ' yes ', 'no', 'Ada', 'ada', 'é', 'e\u0301', 'ﬁ', 'tea')
    const step = fc.record({ copy: fc.nat(2), killed: fc.boolean() })
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(text, { maxLength: 6 }), { minLength: 3, maxLength: 3 }),
        fc.array(text, { maxLength: 3 }),
        fc.array(step, { maxLength: 6 }),
        async (sources, there, steps) => {
          const destination = await buildKey(still)
          await insertMemories(
            still,
            destination,
            [...new Set(there)].map(content => ({ text: content })),
          )
          const before = (await readDocuments(still, destination)).length
          const copies = []
          for (const texts of sources) {
            const source = await buildKey(still)
            await insertMemories(
              still,
              source,
              texts.map(content => ({ text: content })),
            )
            copies.push(await promised(source, destination))
          }
          for (const { copy, killed } of steps) {
            const cut = killed ? await cutOff() : null
            await copyChunk(still, copies[copy]!.chunk(0)).catch((error: Error) => {
              if (error.message !== 'cut') throw error
            })
            await cut?.restore()
          }
          await Promise.all(copies.map(({ chunk }) => copyChunk(still, chunk(0))))

          const contents = (some: string[]) => new Set(some.map(one => one.normalize('NFC').trim()))
          const documents = await readDocuments(still, destination)
          const bodies = await Promise.all(
            copies.map(async ({ outcome }) => (await outcome())!.body as Record<string, number>),
          )
          const sum = (field: string) => bodies.reduce((all, body) => all + body[field]!, 0)
          const { keyRow } = await resolveCaller(still, destination)
          const asked = sources.flat().length
          const added = documents.length - before
          t.same(contents(documents.map(one => one.text)), contents([...there, ...sources.flat()]))
          t.equal(added, contents([...there, ...sources.flat()]).size - contents(there).size)
          t.equal(sum('copied'), added)
          t.equal(sum('deduped_or_skipped'), asked - added)
          t.equal(keyRow.rawUnits, documents.length)
          return documents.length === keyRow.rawUnits
        },
      ),
      { numRuns: 20 },
    )
  },
)

t.test('two copies of the same texts at once bring each text once', async t => {
  const sources = await Promise.all([0, 1, 2, 3].map(() => buildKey(still)))
  const destination = await buildKey(still)
  for (const source of sources) await insertMemories(still, source, manyFacts(400))
  const copies = await Promise.all(sources.map(source => promised(source, destination)))
  await Promise.all(copies.map(({ chunk }) => copyChunk(still, chunk(0))))
  t.equal((await readDocuments(still, destination)).length, 400)
  const outcomes = await Promise.all(copies.map(({ outcome }) => outcome()))
  const bodies = outcomes.map(outcome => outcome!.body as Record<string, number>)
  t.equal(
    bodies.reduce((sum, { copied = 0 }) => sum + copied, 0),
    400,
  )
})

t.test('copies in both directions at once do not lock each other out', async t => {
  const [one, other] = [await buildKey(still), await buildKey(still)]
  await insertMemories(still, one, manyFacts(900))
  await insertMemories(
    still,
    other,
    Array.from({ length: 900 }, (_, n) => ({ text: `other fact ${n}` })),
  )
  const there = await promised(one, other)
  const back = await promised(other, one)
  await Promise.all([0, 1].flatMap(n => [there, back].map(c => copyChunk(still, c.chunk(n)))))
  t.match(await there.outcome(), { body: { copied: 900 } })
  t.match(await back.outcome(), { body: { copied: 900 } })
})

t.test(
  '409: a destination that was cleared, or whose key has ended, gets nothing more',
  async t => {
    const source = await buildKey(still)
    await insertMemories(still, source, manyFacts(3))
    const cleared = await buildKey(still)
    const first = await promised(source, cleared)
    const { scope } = await resolveCaller(still, cleared)
    await still.postgres.transaction(tx => raiseEpoch(tx, scope.vault))
    await jobHandlers['copy-chunk'](still, [jobOf(first.chunk(0))])
    t.match(await first.outcome(), { status: 409, body: { error: /cleared/, hint: String } })
    t.same(await readDocuments(still, cleared), [])
    t.equal((await resolveCaller(still, cleared)).keyRow.rawUnits, 0)

    const ended = await buildKey(still)
    const second = await promised(source, ended)
    const { account, keyHash } = await resolveCaller(still, ended)
    await revokeKey(still.postgres.query, account, keyHash)
    await jobHandlers['copy-chunk'](still, [jobOf(second.chunk(0))])
    t.match(await second.outcome(), { status: 409, body: { error: /ended/ } })
  },
)

const jobOf = (data: StepJob, last = false) => ({
  id: mintId(),
  data,
  signal: new AbortController().signal,
  isRetry: false,
  isLastTry: last,
  claim: 0,
})

t.test(
  '200 with errors: one chunk is cut off, the rest is there; again adds what is missing',
  async t => {
    const [source, destination] = [await buildKey(still), await buildKey(still)]
    await insertMemories(still, source, manyFacts(1_200))
    const { chunk, outcome, operation } = await promised(source, destination)
    await copyChunk(still, chunk(0))
    const waiting = await findStep<CopyChunk>(still.postgres.query, operation, 1)
    t.equal(waiting?.ids.length, 500)
    gate.shut()
    const run = (backend: Backend, isLastTry: boolean) =>
      jobHandlers['copy-chunk'](backend, [jobOf(chunk(1), isLastTry)])
    t.match(await run(gated, true), [{ status: 'snooze' }], 'no try while the store is away')
    // It answers others: one of them fails until its last try is over.
    const failing = { ...gated, storeBreaker: still.storeBreaker }
    t.match(await run(failing, false), [{ status: 'retry' }], 'it is tried again')
    t.match(await run(failing, true), [{ status: 'done' }])
    await copyChunk(still, chunk(2))
    t.match(await outcome(), {
      status: 200,
      body: { copied: 700, failed: 500, errors: [/^Memories 501 to 1000: /] },
    })
    t.equal((await readDocuments(still, destination)).length, 700)
    await copyChunk(still, chunk(1))
    t.equal(
      (await readDocuments(still, destination)).length,
      700,
      'what was given up stays given up',
    )

    const again = await promised(source, destination)
    for (const n of [0, 1, 2]) await copyChunk(still, again.chunk(n))
    t.match(await again.outcome(), {
      status: 200,
      body: { copied: 500, deduped_or_skipped: 700, failed: 0 },
    })
    t.equal((await readDocuments(still, destination)).length, 1_200)
    t.equal((await resolveCaller(still, destination)).keyRow.rawUnits, 1_200)
  },
)

t.test('what is deleted from the source meanwhile is not copied', async t => {
  const [source, destination] = [await buildKey(still), await buildKey(still)]
  const ids = await insertMemories(still, source, manyFacts(5))
  const { chunk, outcome, caller } = await promised(source, destination)
  await removeDocuments(still, caller.scope.vault, [ids[2]!])
  await copyChunk(still, chunk(0))
  t.match(await outcome(), { body: { copied: 4, deduped_or_skipped: 1, failed: 0 } })
})

t.test('what a killed run has copied goes when its memory is deleted before the next', async t => {
  const [source, destination] = [await buildKey(still), await buildKey(still)]
  const texts = [...manyFacts(5), { text: 'fact 3' }]
  const ids = await insertMemories(still, source, texts)
  const { chunk, outcome, caller } = await promised(source, destination)
  const { restore } = await cutOff()
  await t.rejects(copyChunk(still, chunk(0)), { message: 'cut' })
  await restore()
  t.equal((await readDocuments(still, destination)).length, 5)
  // The text of one of them is that of another memory too.
  await removeDocuments(still, caller.scope.vault, [ids[2]!, ids[3]!])
  await copyChunk(still, chunk(0), { again: true })
  t.match(await outcome(), { body: { copied: 4, deduped_or_skipped: 2, failed: 0 } })
  const left = (await readDocuments(still, destination)).map(({ text }) => text)
  t.same(left.toSorted(), ['fact 0', 'fact 1', 'fact 3', 'fact 4'])
  t.equal((await resolveCaller(still, destination)).keyRow.rawUnits, 4)
})

const clear = (vault: string) => still.postgres.transaction(tx => raiseEpoch(tx, vault))

/** Nothing came to the destination, and all that was asked for is counted as skipped. */
async function expectNothingCopied(
  t: Test,
  destination: string,
  { outcome }: Pick<Awaited<ReturnType<typeof promised>>, 'outcome'>,
  skipped: number,
): Promise<void> {
  t.match(await outcome(), {
    status: 200,
    body: { copied: 0, deduped_or_skipped: skipped, failed: 0, estimated_tokens: 0 },
  })
  t.same(await readDocuments(still, destination), [])
  t.equal((await resolveCaller(still, destination)).keyRow.rawUnits, 0)
}

t.test(
  'nothing is copied from a source that was cleared, though its documents are there',
  async t => {
    const [source, destination] = [await buildKey(still), await buildKey(still)]
    await insertMemories(still, source, manyFacts(5))
    const copy = await promised(source, destination)
    await clear(copy.caller.scope.vault)
    await copyChunk(still, copy.chunk(0))
    await expectNothingCopied(t, destination, copy, 5)
  },
)

t.test('a source that is cleared while a chunk is being copied', async t => {
  const [source, destination] = [await buildKey(still), await buildKey(still)]
  await insertMemories(still, source, manyFacts(5))
  const copy = await promised(source, destination)
  const { scope } = await resolveCaller(still, destination)
  const held = 'select pg_advisory_xact_lock(hashtextextended($1, 0))'
  const release = await holdRow(t, still, held, `contents:${scope.vault}`)
  // The chunk has read its memories, and waits.
  const copying = copyChunk(still, copy.chunk(0))
  await untilWaiting(still, 1)
  await clear(copy.caller.scope.vault)
  await release()
  await copying
  await expectNothingCopied(t, destination, copy, 5)
})

t.test('what a killed run has written goes when the source is cleared before the next', async t => {
  const [source, destination] = [await buildKey(still), await buildKey(still)]
  await insertMemories(still, source, manyFacts(600))
  const copy = await promised(source, destination)
  await copyChunk(still, copy.chunk(1))
  const { restore } = await cutOff()
  await t.rejects(copyChunk(still, copy.chunk(0)), { message: 'cut' })
  await restore()
  t.equal((await readDocuments(still, destination)).length, 600)
  const { keyRow: before } = await resolveCaller(still, destination)
  await clear(copy.caller.scope.vault)
  await copyChunk(still, copy.chunk(0), { again: true })
  // What was copied before the clearing is the destination's own.
  t.match(await copy.outcome(), { status: 200, body: { copied: 100, deduped_or_skipped: 500 } })
  t.equal((await readDocuments(still, destination)).length, 100)
  const { keyRow } = await resolveCaller(still, destination)
  t.equal(keyRow.rawUnits, 100)
  t.ok(keyRow.revision > before.revision, 'every process drops them')
})

t.test('a session of the source that is cleared changes nothing', async t => {
  const [source, destination] = [await buildKey(still), await buildKey(still)]
  await insertMemories(still, source, manyFacts(3))
  const { chunk, outcome, caller } = await promised(source, destination)
  await still.postgres.transaction(tx => raiseSessionEpoch(tx, caller.scope.vault, 'monday'))
  await copyChunk(still, chunk(0))
  t.match(await outcome(), { body: { copied: 3, deduped_or_skipped: 0 } })
})

t.test('a memory whose vector went meanwhile is embedded anew', async t => {
  const [source, destination] = [await buildKey(still), await buildKey(still)]
  const [id] = await insertMemories(still, source, [{ text: 'the bicycle has a flat tyre' }])
  const { chunk, outcome, caller } = await promised(source, destination)
  const before = await still.mongo.memories.findOneAndUpdate(
    { vault: caller.scope.vault, _id: id! },
    { $set: { vectors: {} } },
  )
  await copyChunk(still, chunk(0))
  t.match(await outcome(), { body: { copied: 1 } })
  t.same((await readDocuments(still, destination))[0]!.vectors, before!.vectors)
})
