import t from 'tap'
import { createTestClient } from '#test/support/start/api.ts'
import { tableText } from '#test/support/checks/observe.ts'
import { buildTeam } from '#test/support/start/team.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, base } = await startService(t)

async function begin() {
  const team = await buildTeam(backend)
  const admin = createTestClient(base, team.adminKey)
  const org = `/v1/orgs/${team.org}`
  const path = `${org}/memories`
  const list = async (metadata: unknown, more = '') => {
    const filter = encodeURIComponent(JSON.stringify(metadata))
    return admin.get(`${path}?metadata=${filter}${more}`)
  }
  return { team, admin, org, path, list }
}

const texts = (items: { text?: string; content?: string }[]): string[] =>
  items.map(({ text, content }) => text ?? content!).toSorted()

const wiki = 'The spare key is under the mat.'
const faq = 'The spare key is with Otto.'
const plain = 'The spare key hangs behind the clock.'

async function filled() {
  const begun = await begin()
  const seeded = await begun.admin.post(begun.path, {
    items: [
      { text: wiki, metadata: { source: 'wiki', page: 3, current: true } },
      { text: faq, metadata: { source: 'faq', page: 3 }, tags: ['keys'] },
      { text: plain },
    ],
  })
  return { ...begun, items: seeded.body.items as { mem_id: string; metadata?: object }[] }
}

const origin = 'seed'

t.test('201: seeds keep their metadata, one or several, and say that they are seeds', async t => {
  const { admin, path, items } = await filled()
  t.same(
    items.map(({ metadata }) => metadata),
    [
      { source: 'wiki', page: 3, current: true, origin },
      { source: 'faq', page: 3, origin },
      { origin },
    ],
  )
  const one = { text: 'One', metadata: { name: 'Cafe\u0301', zero: -0 } }
  const { body } = await admin.post(path, one)
  t.same(body.items[0].metadata, { name: 'Caf\u00e9', zero: 0, origin })
  const two = await admin.post(path, { text: 'Two', metadata: { origin: 'person' } })
  t.same(two.body.items[0].metadata, { origin }, 'no seed is the word of a person')
  const three = await admin.post(path, { text: 'Three', metadata: { origin: 'program' } })
  t.same(three.body.items[0].metadata, { origin: 'program' }, 'less trust is kept')
  const full = Object.fromEntries(Array.from({ length: 16 }, (_, i) => [`f${i}`, i]))
  const four = await admin.post(path, { text: 'Four', metadata: full })
  t.same(four.body.items[0].metadata, full, "all fields are the client's")
  const listed = (await admin.get(path)).body.items as { text: string; metadata?: object }[]
  const shown = new Map(listed.map(({ text, metadata }) => [text, metadata]))
  t.same(shown.get(wiki), { source: 'wiki', page: 3, current: true, origin })
  t.same(shown.get('One'), body.items[0].metadata)
  t.same(shown.get(plain), { origin })
})

t.test('the list of an admin takes a whole filter, with a question and without', async t => {
  const { admin, path } = await filled()
  const filters: [filter: object, expected: string[]][] = [
    [{ metadata: { page: { gte: 3 } }, not: { metadata: { source: 'faq' } } }, [wiki]],
    [{ metadata: { page: { exists: false } }, origin: 'seed' }, [plain]],
    [{ origin: { ne: 'seed' } }, []],
  ]
  for (const [filter, expected] of filters) {
    for (const more of ['', '&q=where%20is%20the%20spare%20key']) {
      const asked = `${path}?filter=${encodeURIComponent(JSON.stringify(filter))}${more}`
      const { status, body } = await admin.get(asked)
      t.equal(status, 200)
      t.same(texts(body.items), expected.toSorted(), asked)
    }
  }
})

t.test('the list of an admin is filtered by it, with a question and without', async t => {
  const { list, admin, path } = await filled()
  const filters: [metadata: object, expected: string[]][] = [
    [{}, [plain, faq, wiki]],
    [{ page: 3 }, [faq, wiki]],
    [{ page: '3' }, []],
    [{ source: ['wiki', 'faq'], page: 3 }, [faq, wiki]],
    [{ current: true }, [wiki]],
    [{ source: 'intranet' }, []],
  ]
  for (const [metadata, expected] of filters) {
    for (const more of ['', '&q=where%20is%20the%20spare%20key']) {
      const { body } = await list(metadata, more)
      t.same(texts(body.items), expected.toSorted(), `${JSON.stringify(metadata)} ${more}`)
    }
  }
  t.same(texts((await list({ page: 3 }, '&tag=keys')).body.items), [faq])
  const first = (await list({ page: 3 }, '&limit=1')).body
  const second = (await list({ page: 3 }, `&limit=1&cursor=${first.next_cursor}`)).body
  t.same(texts([...first.items, ...second.items]), [faq, wiki].toSorted())
  t.equal((await admin.get(`${path}?limit=1&cursor=${first.next_cursor}`)).status, 400)
})

t.test('members filter by what they may see', async t => {
  const { team } = await filled()
  await team.defineRole('porter', ['keys'])
  const porter = createTestClient(base, await team.addMember('otto@example.com', ['porter']))
  const guest = createTestClient(base, await team.addMember('ada@example.com'))
  const query = 'Where is the spare key?'
  const answers = async (client: typeof porter, metadata: object): Promise<string[][]> => {
    const asked = { query, metadata }
    const found = await client.post('/v1/memory/search', { ...asked, limit: 10 })
    const span = { from: '2020-01-01', metadata }
    const dated = await client.post('/v1/memory/date-search', span)
    const ranked = await client.post('/v1/memory/date-search', { ...span, query })
    const messages = [{ role: 'user', content: query }]
    const { context } = (await client.post('/v1/memory/prepare', { messages, metadata })).body
    const told = [wiki, faq, plain].filter(text => (context ?? '').includes(text)).toSorted()
    return [...[found, dated, ranked].map(({ body }) => texts(body.memories)), told]
  }
  const each = (expected: string[]) => Array.from({ length: 4 }, () => expected.toSorted())
  t.same(await answers(porter, { page: 3 }), each([wiki, faq]))
  t.same(await answers(porter, { source: 'faq' }), each([faq]))
  t.same(await answers(guest, { page: 3 }), each([wiki]))
  t.same(await answers(guest, { source: 'faq' }), each([]))
  const found = await porter.post('/v1/memory/search', { query: faq, limit: 1 })
  t.match(found.body.memories, [{ source: 'org', metadata: { source: 'faq', page: 3 } }])
})

t.test(
  'it stays through edits, other tags, reviews, removal and return, and the export',
  async t => {
    const { admin, org, path, items, list } = await filled()
    const one = `${path}/${items[0]!.mem_id}`
    const metadata = { source: 'wiki', page: 3, current: true, origin }
    const patch = (change: object) => admin.send('PATCH', one, { body: change })
    const text = 'The spare key is in the shed.'
    t.same((await patch({ text })).body.metadata, metadata)
    t.same((await patch({ tags: ['keys'] })).body.metadata, metadata)
    t.same((await patch({ reviewed: false })).body.metadata, metadata)
    t.same(texts((await list({ source: 'wiki' })).body.items), [text])
    t.equal((await admin.send('DELETE', one)).status, 200)
    t.same((await list({ source: 'wiki' })).body.items, [])
    t.same((await admin.post(`${one}/restore`)).body.metadata, metadata)
    t.same(texts((await list({ source: 'wiki' })).body.items), [text])
    const doubtful = { text: 'The shed is green.', confidence: 0.3, metadata: { source: 'wiki' } }
    const { mem_id: waiting } = (await admin.post(path, doubtful)).body
    const reviewed = await admin.post(`${path}/${waiting}/review`, { action: 'approve' })
    t.equal(reviewed.status, 200)
    t.same(
      texts((await list({ source: 'wiki' })).body.items),
      [text, 'The shed is green.'].toSorted(),
    )

    const lines = (await admin.get(`${org}/export`)).body as { type: string; text?: string }[]
    const exported = lines.filter(line => line.type === 'shared_memory')
    t.match(
      exported.find(line => line.text === text),
      { metadata },
    )
    t.match(
      exported.find(line => line.text === plain),
      { metadata: { origin } },
    )

    const historyOf = async (): Promise<string> => {
      const rows = JSON.parse(await tableText(backend, 'shared_writes')) as { memory: string }[]
      return JSON.stringify(rows.filter(({ memory }) => memory === items[0]!.mem_id))
    }
    t.match(await historyOf(), /wiki/)
    t.equal((await admin.send('DELETE', `${one}?permanent=true`)).status, 200)
    t.match(await historyOf(), /delete/)
    t.notMatch(await historyOf(), /wiki/)
  },
)

t.test('the policy on private data holds for it', async t => {
  const { admin, org, path } = await begin()
  const decide = (mode: string) =>
    admin.send('PUT', `${org}/policy`, { body: { redaction: { mode, kinds: ['email'] } } })
  t.equal((await decide('redact')).status, 200)
  const seed = { text: 'Hello there', metadata: { from: 'ada@example.com', floor: 3 } }
  const { body } = await admin.post(path, seed)
  t.same(body.items[0].metadata, { from: '[redacted:email]', floor: 3, origin })
  t.same((await admin.get(path)).body.items[0].metadata, body.items[0].metadata)
  await decide('block')
  const items = [{ ...seed, text: 'Hello again' }, { text: 'Good day' }]
  t.match((await admin.post(path, { items })).body, {
    created: 1,
    errors: [{ index: 0, error: /metadata\.from.+email/ }],
  })
})

t.test('400: what is no metadata, or no filter, with the field that is wrong', async t => {
  const { admin, path } = await begin()
  const many = Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`k${n}`, n]))
  for (const metadata of [
    many,
    { 'not a name': 1 },
    { note: 'x'.repeat(257) },
    { guild_id: 2 ** 53 },
    { nested: { a: 1 } },
    { list: ['a'] },
    'text',
  ]) {
    const single = await admin.post(path, { text: 'hello', metadata })
    t.match(single, { status: 400, body: { error: /metadata/ } }, JSON.stringify(metadata))
    const several = await admin.post(path, { items: [{ text: 'a' }, { text: 'b', metadata }] })
    t.match(several, { status: 400, body: { error: /items.*1.*metadata/ } })
  }
  const both = await admin.post(path, { metadata: { a: 1 }, items: [{ text: 'a' }] })
  t.match(both, { status: 400, body: { error: /either text or items/ } })
  t.same((await admin.get(path)).body.items, [])
  for (const filter of ['{', '[1]', '3', '{"a b":1}', '{"a":[]}', '{"a":9007199254740992}']) {
    const refused = await admin.get(`${path}?metadata=${encodeURIComponent(filter)}`)
    t.match(refused, { status: 400, body: { error: /metadata/ } }, filter)
  }
})

t.test('the same seeding again under its Idempotency-Key answers the same', async t => {
  const { admin, path } = await begin()
  const seed = { text: wiki, metadata: { source: 'wiki' } }
  const key = { 'idempotency-key': 'seed-metadata' }
  const first = await admin.post(path, seed, key)
  t.same((await admin.post(path, seed, key)).body, first.body)
  const other = { ...seed, metadata: { source: 'faq' } }
  t.match(await admin.post(path, other, key), { status: 400, body: { error: /idempotency/i } })
})
