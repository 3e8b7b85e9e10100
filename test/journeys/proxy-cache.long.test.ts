import t from 'tap'
import { createTestClient } from '#test/support/api.ts'
import { insertMemories } from '#test/support/insert-memories.ts'
import { startProxyFixture } from '#test/support/model-provider/proxy-fixture.ts'
import { families, type Family } from '#test/support/tool-sessions.ts'

/**
 * Providers keep the beginning of a prompt. Over a session of an agent each request goes on from the one
 * before, with the blocks of earlier turns where they were.
 */

const world = await startProxyFixture(t)
const { provider, backend, base } = world

const turns = 20
const steps = 3
const nouns =
  'bicycle boat house kettle piano lamp garden scarf carpet bottle window basket candle ladder ' +
  'mirror pillow teapot violin wallet blanket'
const topics = nouns.split(' ')
const facts = topics.map((noun, index) => ({
  text: `The ${noun} of my sister is number ${index + 7} in the blue book.`,
}))

/** What the provider got for a request, and what the answer said about it. */
async function send(key: string, { path }: Family, body: string) {
  const response = await fetch(base + path, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-memory-key': key,
      'x-provider-key': 'sk-own',
    },
    body,
  })
  await response.bytes()
  if (response.status !== 200) throw new Error(`status ${response.status}`)
  return {
    sent: provider.requests.at(-1)!.body.toString(),
    isSafe: response.headers.get('x-memory-cache-safe') === 'true',
    bytes: Number(response.headers.get('x-memory-cache-bytes')),
    status: response.headers.get('x-memory-status'),
    abstained: response.headers.get('x-memory-abstained'),
  }
}

type Unit = { text: string; isBlock: boolean }

/** How many bytes of the client's two requests begin with; blocks are not counted. */
function shared(one: readonly Unit[], other: readonly Unit[]): number {
  let bytes = 0
  for (const [index, { text, isBlock }] of one.entries()) {
    if (other[index]?.text !== text) break
    if (!isBlock) bytes += Buffer.byteLength(text)
  }
  return bytes
}

for (const [name, family] of Object.entries(families)) {
  t.test(`${name}: ${turns} turns with ${steps} tool steps each lose at most 1 %`, async t => {
    const key = `${await world.newKey()}:read`
    await insertMemories(backend, key.slice(0, -5), facts)
    let before: { sent: string; units: Unit[]; own: Unit[] } | undefined
    const sum = { direct: 0, proxied: 0, blocks: 0, unsafe: 0 }
    for (let turn = 0; turn < turns; turn++) {
      for (let step = 0; step <= steps; step++) {
        const body = family.body(topics, turn, step)
        const { sent, isSafe, bytes } = await send(key, family, body)
        const [units, own] = [family.units(sent), family.units(body)]
        t.same(
          units.filter(({ isBlock }) => !isBlock),
          own,
          'all but the blocks is the client’s',
        )
        const marks = (text: string) => text.split('"cache_control"').length
        t.ok(marks(sent) <= marks(body), 'not a mark more')
        if (before) {
          sum.direct += shared(before.own, own)
          sum.proxied += shared(before.units, units)
          if (isSafe) t.equal(shared(before.units, units), shared(before.own, own))
          if (family.isAppendOnly) {
            const [one, other] = [before.sent, sent].map(text =>
              Buffer.from(text).subarray(0, bytes),
            )
            t.ok(one!.equals(other!), 'the header')
          }
        }
        if (!isSafe) sum.unsafe++
        before = { sent, units, own }
      }
      sum.blocks = before!.units.filter(({ isBlock }) => isBlock).length
    }
    const lost = 1 - sum.proxied / sum.direct
    t.comment(JSON.stringify({ ...sum, lost }))
    t.ok(sum.blocks >= 1, 'the first block is still there at the end')
    t.ok(lost <= 0.01, `${lost} lost`)
    t.equal(sum.unsafe, 0, 'and the header says so')
  })

  t.test(`${name}: a deleted memory leaves the block of an earlier turn`, async t => {
    const key = await world.newKey()
    const ids = await insertMemories(backend, key, facts)
    const call = (turn: number, step: number) => send(key, family, family.body(topics, turn, step))
    await call(0, 0)
    t.match((await call(0, steps)).sent, 'number 7 in')
    const after = await call(1, 0)
    t.match(after.sent, 'number 7 in', 'the block of the first turn is still there')
    t.ok(after.isSafe)
    await createTestClient(base).post(
      '/v1/memory/delete-ids',
      { ids: [ids[0]] },
      { 'x-memory-key': key },
    )
    const gone = await call(1, 1)
    t.notMatch(gone.sent, 'number 7 in')
    t.notOk(gone.isSafe, 'the header tells')
    t.ok((await call(1, 2)).isSafe, 'once')
  })

  t.test(
    `${name}: what an earlier block holds is not told again, and the header says so`,
    async t => {
      const key = `${await world.newKey()}:read`
      await insertMemories(backend, key.slice(0, -5), facts.slice(0, 1))
      const repeated = ['bicycle', 'bicycle']
      const call = (turn: number, step: number) =>
        send(key, family, family.body(repeated, turn, step))
      t.match(await call(0, 0), { status: 'ok', abstained: null })
      await call(0, steps)
      const again = await call(1, 0)
      t.match(again, { status: 'none', abstained: 'already_told' })
      t.equal(again.sent.split('number 7 in').length, 2, 'once, in the block of the first turn')
    },
  )

  t.test(`${name}: in plain chat a block goes with its turn, and the header says so`, async t => {
    const key = await world.newKey()
    await insertMemories(backend, key, facts)
    const call = (turn: number) => send(key, family, family.body(topics, turn, 0, 0))
    t.ok((await call(0)).isSafe)
    const { sent, isSafe, bytes } = await call(1)
    t.equal(sent.split('<memory_context>').length, 2)
    t.equal(isSafe, family.marksLastMessage, 'a block behind a mark takes nothing along')
    t.ok(bytes > 0 && bytes < sent.length)
  })
}
