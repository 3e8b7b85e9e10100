import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { createTestClient } from '#test/support/start/api.ts'
import { turnDelays } from '#test/support/checks/observe.ts'
import { startTeamService } from '#test/support/start/working-team.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { countOpenTurns } from '#test/support/checks/observe-jobs.ts'

/** Time runs so many times as fast as in the organization that is played. */
const scale = 10
const members = 200
const modelMs = 10_000 / scale
const intervalMs = 60_000 / 10 / scale
const exchanges = 60

const { base, backend, model, newTeam } = await startTeamService(t, {
  env: { ORG_GATHER_SECONDS: '1' },
})

t.test('200 members, ten exchanges with facts a minute, a model of ten seconds', async t => {
  const team = await newTeam(['finance', 'people'])
  const keys = await Promise.all(
    Array.from({ length: members }, (_, n) => team.addMember(`member-${n}@example.com`)),
  )
  model.delayAll(modelMs)
  const sent: Promise<unknown>[] = []
  for (let n = 0; n < exchanges; n++) {
    // Every other one is about one of eight things that others speak about at the same time.
    const subject = n % 2 === 0 ? `topic-${(n / 2) % 8}` : `matter-${n}`
    const content = `Fact: ${subject}: in state ${n}`
    const client = createTestClient(base, keys[(n * 37) % members])
    sent.push(client.post('/v1/memory/ingest', { messages: [{ role: 'user', content }] }))
    await delay(intervalMs)
  }
  await Promise.all(sent)
  await waitUntil('the turns are done', async () => (await countOpenTurns(backend)) === 0, 300_000)
  const delays = await turnDelays(backend, team.org)
  t.equal(delays.length, exchanges)
  const worst = Math.max(...delays)
  t.comment(`behind by ${worst} ms; 30,000 are five minutes`)
  for (const [pass, most] of [
    ['extract', 1],
    ['tag', 1],
    // What others have changed meanwhile is decided again.
    ['reconcile', 4],
  ] as const) {
    const calls = model.count(pass)
    t.ok(calls > 0 && calls <= most * exchanges, `${pass}: ${calls} calls`)
  }
  const texts = (await team.memories()).map(({ text }) => text)
  for (let topic = 0; topic < 8; topic++) {
    const newest = Array.from({ length: exchanges / 2 }, (_, k) => k).findLast(
      k => k % 8 === topic,
    )!
    const values = texts.filter(text => text.startsWith(`topic-${topic}:`))
    t.same(values, [`topic-${topic}: in state ${newest * 2}`], 'the newest value alone')
  }
})
