import t from 'tap'
import { createTestClient } from '#test/support/start/api.ts'
import { seedTeamMemories } from '#test/support/start/team.ts'
import { startTeamService } from '#test/support/start/working-team.ts'

const { backend, base, newTeam } = await startTeamService(t)
const day = 24 * 3600 * 1000
const now = Date.now()
const daysAgo = (days: number): number => now - days * day

t.test('an update has the author and the time of its words, beside those of the first', async t => {
  const acme = await newTeam()
  const bob = await acme.addMember('bob@example.com', ['Everything'])
  await acme.share('Fact: budget: 5 million', { timestamp: daysAgo(10) })
  await acme.share('Fact: budget: 6 million', { as: bob, timestamp: daysAgo(2) })
  t.match(await acme.memories(), [
    { text: 'budget: 6 million', author: 'bob@example.com', acquiredAt: daysAgo(2) },
  ])
  const { body } = await acme.admin.get(`/v1/orgs/${acme.org}/memories`)
  t.match(body.items, [
    {
      author: 'bob@example.com',
      acquired_at: daysAgo(2),
      first_author: 'ada@example.com',
      first_acquired_at: daysAgo(10),
      contributors: ['ada@example.com', 'bob@example.com'],
    },
  ])
  const found = await createTestClient(base, acme.key).post('/v1/memory/search', {
    query: 'budget',
    limit: 5,
    tiers: [1],
  })
  const [row] = found.body.memories ?? found.body.results ?? []
  t.ok(JSON.stringify(found.body).includes('bob@example.com'), 'members read the same author')
  t.notOk(JSON.stringify(row ?? found.body.memories).includes('"author":"ada@example.com"'))
})

t.test('older words that come late are neither live nor beside, in every order', async t => {
  const saidOn = { March: 10, May: 5, September: 2 }
  for (const order of [
    ['March', 'September', 'May'],
    ['September', 'March', 'May'],
    ['May', 'September', 'March'],
  ] as const) {
    const acme = await newTeam()
    for (const month of order)
      await acme.share(`Fact: launch: in ${month}`, { timestamp: daysAgo(saidOn[month]) })
    const rows = await acme.memories()
    const live = rows.map(({ text, acquiredAt }) => [text, acquiredAt])
    t.same(live, [['launch: in September', daysAgo(2)]], order.join(', '))
  }
})

t.test('words that were said again later are not replaced by those in between', async t => {
  const acme = await newTeam()
  await acme.share('Fact: floor: 3', { timestamp: daysAgo(10) })
  await acme.share('Fact: floor: 3', { timestamp: daysAgo(2) })
  const { pass3 } = await acme.share('Fact: floor: 4', { timestamp: daysAgo(5) })
  t.match(pass3, [{ action: 'NONE', outdated: true }])
  t.match(await acme.memories(), [
    { text: 'floor: 3', acquiredAt: daysAgo(10), confirmedAt: daysAgo(2) },
  ])
  const { body } = await acme.admin.get(`/v1/orgs/${acme.org}/debug/passes?limit=1`)
  t.match(body.passes, [{ pass3: [{ action: 'NONE', outdated: true }] }])
})

t.test('a memory of the same name is found among many of the same phrase', async t => {
  const acme = await newTeam()
  const names =
    'Atlas Birch Cedar Delta Ember Fjord Garnet Harbor Indigo Kestrel Lumen Mosaic'.split(' ')
  await seedTeamMemories(backend, acme, [
    ...names.map((name, number) => ({
      text: `${name}: waits for Nora, ticket ${number}`,
      reviewed: false,
    })),
    { text: 'Jasper: stands in building 65', reviewed: false, acquiredAt: daysAgo(3) },
  ])
  t.match((await acme.share('Fact: Jasper: waits for Nora, ticket 70')).pass3, [
    { action: 'UPDATE', text: 'Jasper: waits for Nora, ticket 70' },
  ])
})
