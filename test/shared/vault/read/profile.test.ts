import fc from 'fast-check'
import t from 'tap'
import { commandListeners } from '#shared/storage/mongo/connect.ts'
import { ProfileCache } from '#shared/vault/read/prepare/profile-cache.ts'
import { createProfileSource } from '#shared/vault/read/prepare/profile-source.mongo.ts'
import { readProfile, type ProfileRow } from '#shared/vault/read/prepare/read-profile.ts'
import { readSamples } from '#test/support/samples/profile-samples.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { buildKey, startTestApi } from '#test/support/start/api.ts'
import {
  insertMemories,
  readDocuments,
  resolveCaller,
} from '#test/support/start/insert-memories.ts'
import { countTurns, startStepClock } from '#test/support/checks/step-clock.ts'

/** What MongoDB was asked for. */
const reads: string[] = []
commandListeners.push(({ commandName }) => {
  if (['find', 'getMore', 'aggregate'].includes(commandName)) reads.push(commandName)
})
const backend = await createTestBackend(t)
const { tuned, heldOut } = readSamples()
const sentences = [...tuned, ...heldOut].map(({ sentence }) => sentence)
const begin = Date.parse('2025-01-01T00:00:00.000Z')
const all = { session: null, kinds: undefined, current: false, asOf: undefined, cursor: undefined }

const rowsOf = async (key: string, asOf?: number): Promise<ProfileRow[]> =>
  (await readProfile(backend, await resolveCaller(backend, key), { ...all, asOf, limit: 500 })).rows

t.test('whatever is stored, edited and deleted, every quote is of a live memory', async t => {
  const sentence = fc.constantFrom(...sentences)
  const step = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({ say: fc.array(sentence, { minLength: 1, maxLength: 4 }) }),
    },
    { weight: 1, arbitrary: fc.record({ edit: fc.nat(30), to: sentence }) },
    { weight: 1, arbitrary: fc.record({ remove: fc.nat(30) }) },
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 12 }), async steps => {
      const key = await buildKey(backend)
      const api = await startTestApi(t, backend, key)
      const ids: string[] = []
      for (const [n, one] of steps.entries()) {
        if ('say' in one) {
          const said = one.say.join(' ')
          const at = begin + n * 86_400_000
          const rows = [
            { text: said, at },
            { text: `Noted: ${said}`, at, role: 'assistant' as const },
          ]
          ids.push((await insertMemories(backend, key, rows))[0]!)
        } else if (ids.length > 0) {
          const id = ids[('edit' in one ? one.edit : one.remove) % ids.length]!
          if ('edit' in one) await api.post('/v1/memory/edit', { memory_id: id, text: one.to })
          else await api.post('/v1/memory/delete-ids', { ids: [id] })
        }
        const live = new Map(
          (await readDocuments(backend, key)).map(({ _id, text, role }) => [_id, { text, role }]),
        )
        const rows = await rowsOf(key)
        for (const { quote, memory, until, since } of rows) {
          t.ok(live.get(memory)?.text?.includes(quote), quote)
          t.equal(live.get(memory)?.role, 'user')
          if (until !== null) t.ok(until >= since)
        }
        backend.profiles.forget((await resolveCaller(backend, key)).scope.vault)
        t.same(await rowsOf(key), rows, 'the same when it is read from the beginning')
      }
    }),
    { numRuns: 5 },
  )
})

t.test('of 3,000 memories a warm profile reads none, a cold one lets the loop turn', async t => {
  const key = await buildKey(backend)
  const caller = await resolveCaller(backend, key)
  const { scope } = caller
  const plain = 'The report about the harbour was filed, and nothing else happened that day.'
  const texts = Array.from({ length: 3_000 }, (_, n) =>
    n % 20 === 0 ? `${plain} ${sentences[(n / 20) % sentences.length]}` : `${plain} ${n}`,
  )
  const documents = texts.map((text, n) => ({
    _id: crypto.randomUUID(),
    vault: scope.vault,
    epoch: scope.epoch,
    session: '',
    session_epoch: 0,
    tier: 1 as const,
    role: 'user' as const,
    text,
    at: new Date(begin + n * 60_000),
  }))
  await backend.mongo.memories.insertMany(documents as never[])
  await rowsOf(key)
  reads.length = 0
  for (let n = 0; n < 50; n++) {
    const { rows } = await readProfile(backend, caller, { ...all, limit: 100 })
    t.equal(rows.length, 100)
  }
  t.same(reads, [], 'warm')

  // A store that answers at once: each turn of the event loop is a pause of the reading.
  const { turns, stop } = countTurns()
  t.teardown(stop)
  let first = 0
  const find = async function* () {
    first = turns()
    yield* documents
  }
  const memories = Object.create(backend.mongo.memories, { find: { value: find } })
  const source = createProfileSource({ mongo: { memories }, postgres: backend.postgres })
  startStepClock(t)
  const statements = await source.load({ scope, session: null }, Infinity)
  t.ok(statements!.size > 100)
  t.ok(turns() - first >= documents.length * 0.95, `cold: ${turns() - first} turns`)

  const asOf = begin + documents.length * 30_000
  const turnsOf = async (): Promise<number> => {
    const before = turns()
    t.equal((await readProfile(backend, caller, { ...all, asOf, limit: 1 })).rows.length, 1)
    return turns() - before
  }
  const built = await turnsOf()
  t.ok(built > 60, `built in ${built} turns`)
  const again = await turnsOf()
  t.ok(again < built / 2, `known for this moment: ${again} turns`)
  stop()

  const small = new ProfileCache(createProfileSource(backend), 100)
  const hint = { reason: 'too-large', message: /100 statements/ }
  await t.rejects(small.get({ scope, session: null }), hint)
  reads.length = 0
  await t.rejects(small.get({ scope, session: null }), hint)
  t.same(reads, [], 'that it is too large is remembered')
})
