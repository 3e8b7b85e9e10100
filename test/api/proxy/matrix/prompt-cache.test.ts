import t from 'tap'
import { createTestClient, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { insertMemories } from '#test/support/start/insert-memories.ts'
import { startProxyFixture } from '#test/support/doubles/model-provider/proxy-fixture.ts'
import {
  lostBytes,
  sessionCalls,
  type SessionCall,
} from '#test/support/samples/tool-session-calls.ts'
import { families } from '#test/support/samples/tool-sessions.ts'

/**
 * Providers keep the beginning of a prompt. Over a session of an agent each request goes on from the one
 * before, with the blocks of earlier turns where they were, whichever process serves it.
 */

const { provider, backend, base, newKey } = await startProxyFixture(t)
const second = await createTestBackend(t, { config: backend.config })
const bases = [base, (await startTestApi(t, second)).base]

const turns = 4
const steps = 2
const topics = ['bicycle', 'boat', 'house', 'kettle', 'piano', 'lamp']
const facts = topics.map((noun, index) => ({
  text: `The ${noun} of my sister is number ${index + 7} in the blue book.`,
}))
const deleteMemory = (key: string, id: string | undefined) =>
  createTestClient(base, key).post('/v1/memory/delete-ids', { ids: [id] })

const marks = (text: string): number => text.split('"cache_control"').length
const blocks = ({ units }: SessionCall): number => units.filter(({ isBlock }) => isBlock).length

for (const [name, family] of Object.entries(families)) {
  /** A key whose vault has these memories, and calls with it to the process of a number. */
  async function begin(memories: { text: string }[], mode = ':read') {
    const key = await newKey()
    const ids = await insertMemories(backend, key, memories)
    const calls = bases.map(at => sessionCalls({ provider, base: at }, `${key}${mode}`, family))
    return { key, ids, call: calls[0]!, at: (number: number) => calls[number % 2]! }
  }

  t.test(`${name}: ${turns} turns with ${steps} tool steps each lose no byte`, async t => {
    const { at } = await begin(facts)
    let before: SessionCall | undefined
    let number = 0
    for (let turn = 0; turn < turns; turn++) {
      for (let step = 0; step <= steps; step++) {
        const body = family.body(topics, turn, step, steps)
        const now = await at(number++)(body)
        t.same(
          now.units.filter(({ isBlock }) => !isBlock),
          now.own,
          'all but the blocks is the client’s',
        )
        t.ok(marks(now.sent) <= marks(body), 'not a mark more')
        t.equal(now.isSafe, true)
        if (before) {
          t.equal(lostBytes(before, now), 0)
          const [one, other] = [before, now].map(({ sent }) =>
            Buffer.from(sent).subarray(0, now.bytes),
          )
          if (family.isAppendOnly) t.ok(one!.equals(other!), 'the header')
        }
        before = now
      }
    }
    t.ok(blocks(before!) >= 1, 'the first block is still there at the end')
  })

  t.test(`${name}: what is told meanwhile waits for the next turn`, async t => {
    const { key, at } = await begin(facts.slice(0, 1), '')
    const sent: SessionCall[] = []
    for (let step = 0; step < 4; step++) {
      const now = await at(step)(family.body(topics, 0, step))
      t.match(now, { status: 'ok', sent: 'number 7 in' })
      t.equal(blocks(now), 1)
      if (step > 0) t.equal(lostBytes(sent.at(-1)!, now), 0)
      sent.push(now)
      const text = `The bicycle of my sister has the colour number ${step}.`
      await insertMemories(backend, key, [{ text }])
    }
    t.notMatch(sent.at(-1)!.sent, 'colour number')
    t.match((await at(0)(family.body(topics, 0, 0))).sent, 'colour number', 'asked anew')
  })

  t.test(`${name}: what is deleted in the middle is gone from the next step`, async t => {
    const other = { text: 'The bicycle of my sister was green.' }
    const { key, ids, at } = await begin([...facts.slice(0, 1), other])
    const step = (number: number) => at(number)(family.body(topics, 0, number))
    t.match((await step(0)).sent, 'number 7 in')
    t.match((await step(1)).sent, 'number 7 in')
    await deleteMemory(key, ids[0])
    for (const number of [2, 3]) {
      const { sent } = await step(number)
      t.notMatch(sent, 'number 7 in')
      t.match(sent, 'was green')
    }
    const options = { headers: { prefer: 'respond-async' } }
    await createTestClient(base, key).send('DELETE', '/v1/memory', options)
    for (const number of [4, 5]) {
      const cleared = await step(number)
      t.equal(blocks(cleared), 0)
      t.equal(cleared.status, 'none')
    }
  })

  t.test(`${name}: a deleted memory leaves the block of an earlier turn`, async t => {
    const { key, ids, call } = await begin(facts)
    await call(family.body(topics, 0, 0))
    t.match((await call(family.body(topics, 0, 3))).sent, 'number 7 in')
    const after = await call(family.body(topics, 1, 0))
    t.match(after.sent, 'number 7 in', 'the block of the first turn is still there')
    t.equal(after.isSafe, true)
    await deleteMemory(key, ids[0])
    const gone = await call(family.body(topics, 1, 1))
    t.notMatch(gone.sent, 'number 7 in')
    t.equal(gone.isSafe, false, 'the header tells')
    t.equal((await call(family.body(topics, 1, 2))).isSafe, true, 'once')
  })

  t.test(
    `${name}: what an earlier block holds is not told again, and the header says so`,
    async t => {
      const { call } = await begin(facts.slice(0, 1))
      const repeated = ['bicycle', 'bicycle']
      t.match(await call(family.body(repeated, 0, 0)), { status: 'ok', abstained: null })
      await call(family.body(repeated, 0, 3))
      const again = await call(family.body(repeated, 1, 0))
      t.match(again, { status: 'none', abstained: 'already_told' })
      t.equal(again.sent.split('number 7 in').length, 2, 'once, in the block of the first turn')
    },
  )

  t.test(`${name}: in plain chat a block goes with its turn, and the header says so`, async t => {
    const { call } = await begin(facts, '')
    t.equal((await call(family.body(topics, 0, 0, 0))).isSafe, true)
    const next = await call(family.body(topics, 1, 0, 0))
    t.equal(blocks(next), 1)
    t.equal(next.isSafe, family.marksLastMessage, 'a block behind a mark takes nothing along')
    t.ok(next.bytes > 0 && next.bytes < next.sent.length)
  })
}
