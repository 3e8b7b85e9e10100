import t from 'tap'
import { createTestClient } from '#test/support/start/api.ts'
import { buildTeam, seedTeamMemories } from '#test/support/start/team.ts'
import { auditEventsOf } from '#test/support/checks/observe.ts'
import { readPages, startService } from '#test/support/start/start-service.ts'

const { backend, base } = await startService(t)
const team = await buildTeam(backend)
await team.defineRole('finance', ['finance'])
await team.defineRole('board', ['*'])
const admin = createTestClient(base, team.adminKey)
const path = `/v1/orgs/${team.org}/memories`

t.test('201: one memory, and its bands', async t => {
  const open = await admin.post(path, { text: 'The office opens at eight' })
  t.match(open, {
    status: 201,
    body: {
      org_id: team.org,
      mem_id: String,
      created: 1,
      failed: 0,
      errors: [],
      items: [
        {
          text: 'The office opens at eight',
          tags: [],
          confidence: 1,
          author: team.email,
          reviewed: true,
          sensitivity: 'open',
        },
      ],
    },
  })
  const internal = await admin.post(path, { text: 'Budget is 5M', tags: [' finance '] })
  t.match(internal.body.items, [{ tags: ['finance'], sensitivity: 'internal' }])
  const restricted = await admin.post(path, { text: 'We sell in May', tags: ['finance', 'deal'] })
  t.match(restricted.body.items, [{ tags: ['deal', 'finance'], sensitivity: 'restricted' }])
})

t.test('201: several at once, and the same again under an Idempotency-Key', async t => {
  const body = { items: [{ text: 'One thing' }, { text: 'Another', tags: ['a'] }] }
  const key = { 'idempotency-key': 'seed-1' }
  const first = await admin.post(path, body, key)
  t.match(first, { status: 201, body: { created: 2, failed: 0, errors: [] } })
  t.notOk('mem_id' in first.body)
  t.same((await admin.post(path, body, key)).body, first.body)
  const ids = new Set(first.body.items.map((item: { mem_id: string }) => item.mem_id))
  const events = await auditEventsOf(backend, team.org)
  t.same(
    events.filter(({ memory }) => ids.has(memory)).map(({ action }) => action),
    ['create', 'create'],
  )
})

t.test('400: what cannot be seeded', async t => {
  for (const body of [
    {},
    { text: ' \n ' },
    { text: 'x', items: [{ text: 'y' }] },
    { tags: ['x'], items: [{ text: 'y' }] },
    { text: 'x', tags: ['*'] },
    { text: 'x', tags: ['  '] },
  ]) {
    const { status, body: answer } = await admin.post(path, body)
    t.equal(status, 400, JSON.stringify(body).slice(0, 60))
    t.type(answer.error, 'string')
  }
})

t.test('200: pages are complete, in order, and hold to their filters', async t => {
  const other = await buildTeam(backend)
  const own = createTestClient(base, other.adminKey)
  const list = `/v1/orgs/${other.org}/memories`
  const at = Date.now()
  await seedTeamMemories(
    backend,
    other,
    Array.from({ length: 25 }, (_, n) => ({
      text: `Fact number ${n} about ${n % 2 ? 'cats' : 'dogs'}`,
      tags: n % 5 === 0 ? ['five', 'x'] : [],
      author: n % 3 === 0 ? 'ann' : 'bob@example.com',
      reviewed: n % 4 !== 0,
      acquiredAt: at - Math.floor(n / 4),
    })),
  )
  const pagesOf = async (query: string) =>
    (await readPages<{ text: string }>(own, `${list}?limit=7${query}`)).flat()
  const all = await pagesOf('')
  t.equal(new Set(all.map(({ text }) => text)).size, 25)
  t.equal((await pagesOf('&tag=five')).length, 5)
  t.equal((await pagesOf('&author=ann')).length, 9)
  t.equal((await pagesOf('&author=Bob@Example.com')).length, 16, 'an email is one in any case')
  t.equal((await pagesOf('&author=Ann')).length, 0, 'and no other name is')
  t.equal((await pagesOf('&reviewed=false')).length, 7)
  t.equal((await pagesOf('&reviewed=true&author=ann&tag=five')).length, 1)
  t.equal((await pagesOf('&q=cats')).filter(({ text }) => /cats/.test(text)).length, 12)
  t.equal((await pagesOf('&q=dogs&tag=five')).length, 3)
  t.equal((await pagesOf('&tag=FIVE')).length, 0)
  const decomposed = 'cafe\u0301'
  t.match(await own.post(list, { text: 'Coffee is free', tags: [` ${decomposed} `] }), {
    status: 201,
    body: { items: [{ tags: ['caf\u00e9'] }] },
  })
  const spelled = await pagesOf(`&tag=${encodeURIComponent(` ${decomposed} `)}`)
  t.equal(spelled.length, 1, 'a tag is found in the bytes it was written with')
  t.equal((await own.get(`${list}?tag[$ne]=x`)).status, 400)
})

t.test('200: PATCH changes what is given, DELETE removes; 404 for what is not there', async t => {
  const { body } = await admin.post(path, { text: 'The wifi is slow', tags: ['it'] })
  const one = `${path}/${body.mem_id}`
  const patch = (change: unknown, at = one) => admin.send('PATCH', at, { body: change })
  t.match(await patch({ text: 'The wifi is fast' }), {
    status: 200,
    body: { text: 'The wifi is fast', tags: ['it'], reviewed: true, sensitivity: 'restricted' },
  })
  t.match((await patch({ tags: [] })).body, { tags: [], sensitivity: 'open' })
  t.match((await patch({ reviewed: false })).body, { reviewed: false })
  t.match((await patch({})).body, { error: 'Nothing to change' })
  t.equal((await patch({ text: ' ' })).status, 400)
  const events = (await admin.get(`${one}/audit`)).body.events
  t.same(
    events.map(({ action }: { action: string }) => action),
    ['update', 'retag', 'update', 'create'],
  )
  t.match(await admin.send('DELETE', one), {
    status: 200,
    body: { deleted: true, id: body.mem_id },
  })
  t.equal((await admin.send('DELETE', one)).status, 404)
  t.equal((await patch({ text: 'x' })).status, 404)
})

t.test('200: what a member finds is what their roles allow, in one ranking', async t => {
  await seedTeamMemories(backend, team, [
    { text: 'The parrot budget is 12 coins', tags: ['finance'], author: 'ann' },
    { text: 'The parrot sale is secret', tags: ['finance', 'deal'], author: 'ann' },
    { text: 'The parrot lives in the lobby', author: 'bob' },
  ])
  const keys = {
    nobody: await team.addMember('nobody@example.com'),
    finance: await team.addMember('fin@example.com', ['finance']),
    board: await team.addMember('board@example.com', ['board', 'finance']),
  }
  const seen = { nobody: 1, finance: 2, board: 3 }
  for (const [name, key] of Object.entries(keys)) {
    const member = createTestClient(base, key)
    await member.post('/v1/memory/ingest?wait=true', {
      messages: [{ role: 'user', content: `My own parrot is called ${name}` }],
    })
    const { body } = await member.post('/v1/memory/search', { query: 'parrot', limit: 50 })
    const parrots = body.memories.filter((row: { content: string }) => /parrot/.test(row.content))
    const shared = parrots.filter((row: { source: string }) => row.source === 'org')
    const count = seen[name as keyof typeof seen]
    t.equal(shared.length, count, name)
    t.equal(parrots.length, count + 1)
    t.equal(body.totalMemories, body.memories.length)
    t.equal(body.tierBreakdown.raw, body.memories.length)
    t.match(shared[0], { tags: Array, author: String, tier: 1 })
    t.notOk('tags' in parrots.find((row: { source: string }) => row.source === 'core'))
    const prepared = await member.post('/v1/memory/prepare', {
      messages: [{ role: 'user', content: 'Tell me about the parrot' }],
    })
    t.match(prepared.body.context, /lobby/)
    t.equal(/12 coins/.test(prepared.body.context), count > 1)
    t.equal(/secret/.test(prepared.body.context), count > 2)
    const rated = await member.post('/v1/memory/search', { query: 'parrot', limit: 9, tiers: [2] })
    t.same(rated.body.memories, [])
    const listed = await member.get('/v1/memory/list')
    t.equal(listed.body.items.length, 1, 'lists are of the private vault alone')
    const exported = await member.get('/v1/memory/export')
    t.notMatch(JSON.stringify(exported.body), /lobby/)
  }
})
