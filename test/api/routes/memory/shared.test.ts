import t from 'tap'
import { jobNames } from '#shared/domain/jobs.ts'
import { finishWithdrawals } from '#shared/org/memories/withdraw-statement.ts'
import { buildKey, createTestClient, startJobWorkers } from '#test/support/start/api.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { startTeamService, type WorkingTeam } from '#test/support/start/working-team.ts'
import { ageRows, setWithdrawn } from '#test/support/checks/alter.ts'
import { countRows, sharedWritesText, statementNotedAt } from '#test/support/checks/observe.ts'

const { backend, base, newTeam } = await startTeamService(t, { working: false })
// Without the sweep, which finishes what was cut short.
await startJobWorkers(backend, ...jobNames.filter(name => name !== 'sweep'))
const path = '/v1/shares'

type Item = { id: string; text: string; visible: boolean; mem_id: string | null }

const clientOf = (key: string) => createTestClient(base, key)
/** As five minutes later, when what a member does not see is listed too. */
const later = () => ageRows(backend, 'shared_statements', '5 minutes')
const listOf = async (key: string): Promise<Item[]> => {
  await later()
  return (await clientOf(key).get(path)).body.items
}
const takeBack = async (key: string, id: string) => clientOf(key).send('DELETE', `${path}/${id}`)
const seenBy = async (key: string, words: string): Promise<string[]> =>
  (await clientOf(key).post('/v1/memory/search', { query: words, limit: 20 })).body.memories
    .filter(({ source }: { source: string }) => source === 'org')
    .map(({ content }: { content: string }) => content)
    .toSorted()
const adminSees = async (team: WorkingTeam) =>
  (await team.admin.get(`/v1/orgs/${team.org}/memories`)).body.items
const queueOf = async (team: WorkingTeam) =>
  (await team.admin.get(`/v1/orgs/${team.org}/memories/review`)).body.review

t.test('what no one else said is gone at once, with its history and trail', async t => {
  const acme = await newTeam()
  const bob = await acme.addMember('bob@example.com')
  await acme.share('Fact: launch: in May')
  await acme.share('Fact: office: in Graz')
  const question = 'launch in May, office in Graz'
  t.same(await seenBy(bob, question), ['launch: in May', 'office: in Graz'])
  const [office, launch] = await listOf(acme.key)
  t.match(launch, {
    text: 'launch: in May',
    said_at: Number,
    visible: true,
    mem_id: String,
    tags: [],
    current: 'launch: in May',
    author: 'ada@example.com',
  })

  t.match(await takeBack(bob, launch!.id), { status: 404 }, 'not of another member')
  t.same((await takeBack(acme.key, launch!.id)).body, { deleted: true, id: launch!.id })
  t.same(await seenBy(bob, question), ['office: in Graz'])
  t.same(await listOf(acme.key), [office])
  t.match(await takeBack(acme.key, launch!.id), { status: 404 })

  const memories = `/v1/orgs/${acme.org}/memories/${launch!.mem_id}`
  t.match((await acme.admin.get(`${memories}/audit`)).body.events, [
    { action: 'delete', actor: 'ada@example.com' },
    { action: 'create', actor: 'ada@example.com' },
  ])
  t.match(await acme.admin.get(`${memories}/history`), { status: 404 })
  t.match(await acme.admin.post(`${memories}/restore`, {}), { status: 404 })
  const { body } = await acme.admin.get(`/v1/orgs/${acme.org}/debug/passes?limit=200`)
  t.notMatch(JSON.stringify(body), /launch/)
  t.notMatch(await sharedWritesText(backend, acme.org), /launch/, 'no words are kept')
  t.equal((await clientOf(acme.key).get('/v1/memory/list')).body.items.length, 4, 'theirs stays')
})

t.test('an admin removes a memory with its words, also one that was removed before', async t => {
  const acme = await newTeam()
  await acme.share('Fact: launch: in May')
  await acme.share('Fact: office: in Graz')
  const [office, launch] = await listOf(acme.key)
  const memories = `/v1/orgs/${acme.org}/memories`
  const removed = (id: string, query: string) =>
    acme.admin.send('DELETE', `${memories}/${id}${query}`)
  const texts = async (): Promise<string> => {
    const { body } = await acme.admin.get(`/v1/orgs/${acme.org}/debug/passes?limit=200`)
    return JSON.stringify(body) + (await sharedWritesText(backend, acme.org))
  }
  const launchId = launch!.mem_id!
  t.equal((await removed(launchId, '')).status, 200)
  t.match(await texts(), /launch: in May/, 'it can be restored')
  t.equal((await removed(launchId, '?permanent=true')).status, 200)
  t.equal((await removed(launchId, '?permanent=true')).status, 404, 'nothing is left')
  t.notMatch(await texts(), /launch: in May/)
  t.match(await acme.admin.post(`${memories}/${launchId}/restore`, {}), { status: 404 })
  const { body } = await acme.admin.get(`${memories}/${launchId}/audit`)
  t.match(body.events, [{ action: 'delete' }, { action: 'create' }])
  t.match(await seenBy(acme.key, 'office in Graz'), ['office: in Graz'])

  t.equal((await removed(office!.mem_id!, '?permanent=true')).status, 200)
  t.notMatch(await texts(), /office: in Graz/)
  t.same(await seenBy(acme.key, 'office in Graz'), [])
  t.same(await listOf(acme.key), [])
})

t.test('what another member said too stays in their name', async t => {
  const acme = await newTeam()
  const bob = await acme.addMember('bob@example.com')
  await acme.share('Fact: launch: in May')
  await acme.share('Fact: launch: in May', { as: bob })
  const [mine] = await listOf(acme.key)
  t.match(await takeBack(acme.key, mine!.id), { status: 200 })
  t.match(await adminSees(acme), [
    { text: 'launch: in May', author: 'bob@example.com', contributors: ['bob@example.com'] },
  ])
  const [theirs] = await listOf(bob)
  t.match(await takeBack(bob, theirs!.id), { status: 200 })
  t.same(await adminSees(acme), [], 'now no one says it')
})

t.test('of three who said it two take it back, the last one first', async t => {
  const acme = await newTeam()
  const bob = await acme.addMember('bob@example.com')
  const carl = await acme.addMember('carl@example.com')
  for (const as of [acme.key, bob, carl]) await acme.share('Fact: launch: in May', { as })
  for (const key of [acme.key, carl]) {
    const [own] = await listOf(key)
    t.match(await takeBack(key, own!.id), { status: 200 })
  }
  t.match(await adminSees(acme), [{ text: 'launch: in May', contributors: ['bob@example.com'] }])
  t.match(await listOf(bob), [{ text: 'launch: in May', visible: true }])
})

t.test('older words: the newer ones of another stay, without the name of the first', async t => {
  const acme = await newTeam()
  const bob = await acme.addMember('bob@example.com')
  await acme.share('Fact: launch: in May')
  await acme.share('Fact: launch: in June', { as: bob })
  const [mine] = await listOf(acme.key)
  t.match(mine, { text: 'launch: in May', current: 'launch: in June', author: 'bob@example.com' })
  t.match(await takeBack(acme.key, mine!.id), { status: 200 })
  const [memory] = await adminSees(acme)
  t.match(memory, {
    text: 'launch: in June',
    author: 'bob@example.com',
    first_author: 'bob@example.com',
  })
  t.same(memory.contributors, ['bob@example.com'])
})

t.test('newer words: those they replaced come back unseen, for a person to decide', async t => {
  const acme = await newTeam()
  const bob = await acme.addMember('bob@example.com')
  await acme.share('Fact: launch: in May')
  await acme.share('Fact: launch: in June', { as: bob })
  const [theirs] = await listOf(bob)
  t.match(await takeBack(bob, theirs!.id), { status: 200 })
  for (const key of [acme.key, bob]) t.same(await seenBy(key, 'launch'), [])
  t.match(await listOf(acme.key), [{ text: 'launch: in May', visible: false, mem_id: null }])
  const waiting = await queueOf(acme)
  t.match(waiting, [{ text: 'launch: in May', author: 'ada@example.com', pending: true }])
  const review = `/v1/orgs/${acme.org}/memories/${waiting[0].mem_id}/review`
  t.match(await acme.admin.post(review, { action: 'approve' }), { status: 200 })
  t.same(await seenBy(bob, 'launch'), ['launch: in May'])
})

t.test('words of an admin stay; a memory that was rejected is in no list', async t => {
  const acme = await newTeam()
  await acme.share('Fact: launch: in May')
  await acme.share('Fact: office: in Graz')
  const [office, launch] = await listOf(acme.key)
  const at = (item: Item | undefined) => `/v1/orgs/${acme.org}/memories/${item!.mem_id}`
  await acme.admin.send('PATCH', at(launch), { body: { text: 'We launch in spring' } })
  t.match(await listOf(acme.key), [{}, { text: 'launch: in May', current: 'We launch in spring' }])
  t.match(await takeBack(acme.key, launch!.id), { status: 200 })
  await acme.admin.send('DELETE', at(office))
  t.same(await listOf(acme.key), [])
  t.match(await adminSees(acme), [{ text: 'We launch in spring', author: 'a member' }])
  await acme.admin.post(`${at(office)}/restore`, {})
  t.match(await listOf(acme.key), [{ text: 'office: in Graz' }], 'restored')
})

t.test('list and answers are the same with and without a hidden memory', async t => {
  const acme = await newTeam(['people'])
  const stories = []
  for (const hidden of [true, false]) {
    const bob = await acme.addMember(`bob-${hidden}@example.com`)
    const said = `pay of eve ${hidden}: 90 #people`
    if (hidden) await acme.share(`Fact: ${said}`)
    await acme.share(`Fact: ${said}`, { as: bob })
    const recordedAt = await statementNotedAt(backend, `bob-${hidden}@example.com`)
    const early = (await clientOf(bob).get(path)).body.items
    const isSameSpan =
      Math.floor(recordedAt.getTime() / 300_000) === Math.floor(Date.now() / 300_000)
    if (isSameSpan) t.same(early, [], 'not at once: that would be a time')
    const items = await listOf(bob)
    const answer = await takeBack(bob, items[0]!.id)
    stories.push({
      items: items.map(({ id: _id, text, ...item }) => ({
        ...item,
        text: text.replace(`${hidden}`, ''),
        said_at: 0,
      })),
      status: answer.status,
      fields: Object.keys(answer.body),
      left: await listOf(bob),
    })
  }
  t.same(stories[0], stories[1])
  t.match(stories[0]!.items, [{ visible: false, mem_id: null, tags: null, current: null }])
  await waitUntil('what no one else said is gone', async () => {
    const texts = (await adminSees(acme)).map(({ text }: Item) => text)
    return texts.length === 1 && texts[0] === 'pay of eve true: 90 #people'
  })
  t.match(await adminSees(acme), [{ author: 'ada@example.com', contributors: ['ada@example.com'] }])
})

t.test('what was cut short is finished by the sweep', async t => {
  const acme = await newTeam(['people'])
  const bob = await acme.addMember('bob@example.com')
  await acme.share('Fact: pay: 90 #people', { as: bob })
  await setWithdrawn(backend, acme.org, 1)
  t.same(await listOf(bob), [], 'as after a crash of the process that took it back')
  t.equal((await adminSees(acme)).length, 1)
  t.ok((await finishWithdrawals(backend)) >= 1)
  t.same(await adminSees(acme), [])
  t.equal(await finishWithdrawals(backend), 0)
})

t.test('one that fails waits for five minutes', async t => {
  const acme = await newTeam()
  await acme.share('Fact: launch: in May')
  await setWithdrawn(backend, acme.org, 1)
  const transaction = () => Promise.reject(new Error('broken'))
  const failing = { ...backend, postgres: { ...backend.postgres, transaction } }
  t.equal(await finishWithdrawals(failing), 0)
  t.equal(await finishWithdrawals(backend), 0, 'it waits')
  t.same(await listOf(acme.key), [])
  await setWithdrawn(backend, acme.org, 1)
  t.equal(await finishWithdrawals(backend), 1)
})

t.test('words that the policy blocks by now do not come back', async t => {
  for (const [others, left] of [
    [[], []],
    [['in spring'], ['launch: in spring']],
  ] as const) {
    const acme = await newTeam()
    const bob = await acme.addMember('bob@example.com')
    for (const words of others) await acme.share(`Fact: launch: ${words}`)
    await acme.share('Fact: launch: ask ada@example.com')
    await acme.share('Fact: launch: ask Bob', { as: bob })
    await acme.admin.send('PUT', `/v1/orgs/${acme.org}/policy`, {
      body: { redaction: { mode: 'block', kinds: ['email'] } },
    })
    const [theirs] = await listOf(bob)
    t.match(await takeBack(bob, theirs!.id), { status: 200 })
    const texts = (items: Item[]) => items.map(({ text }) => text)
    t.same(texts(await queueOf(acme)), left)
    t.same(await adminSees(acme), [])
    t.notMatch(await sharedWritesText(backend, acme.org), /ask Bob/)
    t.equal(await finishWithdrawals(backend), 0)
  }
})

t.test('remember for me, share nothing: the member, and the key', async t => {
  const acme = await newTeam()
  const turns = () => countRows(backend, { table: 'org_turns', org: acme.org })
  const ada = clientOf(acme.key)
  t.match((await ada.get(path)).body, { shares: true, key_shares: true, items: [] })
  t.same((await ada.send('PATCH', path, { body: { shares: false } })).body, {
    shares: false,
    key_shares: true,
  })
  await acme.say('Fact: launch: in May')
  t.equal(await turns(), 0)
  t.match((await acme.admin.get(`/v1/orgs/${acme.org}/users`)).body.users, [{ shares: false }])
  const events = (await acme.admin.get('/v1/account/events')).body.items
  t.match(events[0], {
    action: 'user.changed',
    actor: /^mk_org/,
    before: { team_member_id: 'ada@example.com', shares: true },
    after: { shares: false },
    org_id: acme.org,
  })

  await ada.send('PATCH', path, { body: { shares: true } })
  const minted = await acme.admin.post(`/v1/orgs/${acme.org}/keys`, {
    team_member_id: 'ada@example.com',
    shares: false,
  })
  const quiet = minted.body.memory_key as string
  t.match((await clientOf(quiet).get(path)).body, { shares: true, key_shares: false })
  await acme.say('Fact: launch: in May', { as: quiet })
  t.equal(await turns(), 0)
  t.same(
    (await acme.admin.get(`/v1/orgs/${acme.org}/keys`)).body.keys.map(
      ({ shares }: { shares: boolean }) => shares,
    ),
    [true, false],
  )
  await acme.share('Fact: launch: in May')
  t.equal(await turns(), 1, 'with the other key it is shared again')
})

t.test('pages, and who may ask', async t => {
  const acme = await newTeam()
  for (const n of [1, 2, 3]) await acme.share(`Fact: thing ${n}: there`)
  const ada = clientOf(acme.key)
  const first = (await ada.get(`${path}?limit=2`)).body
  t.match(first, { has_more: true, items: [{ text: 'thing 3: there' }, {}] })
  const second = (await ada.get(`${path}?limit=2&cursor=${first.next_cursor}`)).body
  t.match(second, { has_more: false, next_cursor: null, items: [{ text: 'thing 1: there' }] })
  const own = clientOf(await buildKey(backend))
  t.match(await own.get(path), { status: 403, body: { error: /no member/ } })
})
