import t from 'tap'
import { findDeniedMemories } from '#shared/org/trail/denied-memories.ts'
import { createTestClient, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { storedDigests, storedDocuments } from '#test/support/checks/observe.ts'
import { buildTeam, seedTeamMemories } from '#test/support/start/team.ts'

const backend = await createTestBackend(t)
const team = await buildTeam(backend)
const launches = await team.defineRole('Launches', ['launch'])
const people = await team.defineRole('People', ['people', 'launch'])
const board = await team.defineRole('Board', ['*'])
const ann = await team.addMember('ann', ['Launches'])
const bob = await team.addMember('bob', ['Launches', 'People'])
const { base } = await startTestApi(t, backend)
const admin = createTestClient(base, team.adminKey)
const [parrot, launch, salary, waiting] = await seedTeamMemories(backend, team, [
  { text: 'The parrot of the office is green', acquiredAt: 4_000_000_000 },
  { text: 'The rocket launches on the fifth of May', tags: ['launch'], acquiredAt: 3_000_000_000 },
  { text: 'The salary of Eve is 90 thousand', tags: ['people'], acquiredAt: 2_000_000_000 },
  {
    text: 'The salary of Eve may be 95 thousand',
    reviewed: false,
    confidence: 0.5,
    pending: true,
    acquiredAt: 1_000_000_000,
  },
])
const path = `/v1/orgs/${team.org}/memories/search`
const { body: listed } = await admin.get(`/v1/orgs/${team.org}/users`)
const userId = (name: string): string =>
  listed.users.find((user: { team_member_id: string }) => user.team_member_id === name).user_id

type Answer = Record<string, unknown> & { memories: Row[]; kept_back: Row[] }
type Row = { mem_id: string; text: string; score?: number; missing_tags?: string[] }

async function searchedAs(body: object): Promise<Answer> {
  const answer = await admin.post(path, body)
  t.equal(answer.status, 200)
  return answer.body
}

const idsOf = (rows: readonly Row[]): string[] => rows.map(({ mem_id }) => mem_id)

t.test('a question is answered as the member is, and what is kept back says why', async t => {
  const query = 'What is the salary of Eve?'
  const asAnn = await searchedAs({ user_id: userId('ann'), query })
  t.match(asAnn, {
    org_id: team.org,
    team_member_id: 'ann',
    roles: [{ role_id: launches, name: 'Launches' }],
    allowed_tags: ['launch'],
    wildcard: false,
    permitted: 2,
    dropped: 1,
    kept_back: [
      {
        mem_id: salary,
        text: 'The salary of Eve is 90 thousand',
        missing_tags: ['people'],
        pending: false,
        sensitivity: 'internal',
      },
      { mem_id: waiting, missing_tags: [], opened_by: [], pending: true },
    ],
  })
  const openedBy = asAnn.kept_back[0] as unknown as { opened_by: { role_id: string }[] }
  t.same(new Set(openedBy.opened_by.map(role => role.role_id)), new Set([people, board]))

  for (const [name, key] of Object.entries({ ann, bob })) {
    for (const query of ['What is the salary of Eve?', 'rocket launches in May']) {
      const asked = { query, limit: 50 }
      const { body: own } = await createTestClient(base, key).post('/v1/memory/search', asked)
      const shown = await searchedAs({ user_id: userId(name), query })
      t.same(
        shown.memories.map(row => [row.mem_id, row.text, row.score]),
        own.memories.map((row: Record<string, unknown>) => [row.id, row.content, row.score]),
        `${name} is given the same, with the same scores: ${query}`,
      )
    }
  }
  const asBob = await searchedAs({ user_id: userId('bob'), query, limit: 1 })
  t.same([idsOf(asBob.memories), idsOf(asBob.kept_back)], [[salary], [waiting]])
})

t.test('without a question the newest of both, by user or by roles', async t => {
  const asAnn = await searchedAs({ user_id: userId('ann') })
  t.same(idsOf(asAnn.memories), [parrot, launch])
  t.notOk('score' in asAnn.memories[0]!)
  t.same(idsOf(asAnn.kept_back), [salary, waiting])
  const asLaunches = await searchedAs({ role_ids: [launches.toUpperCase()] })
  t.match(asLaunches, { team_member_id: null, roles: [{ name: 'Launches' }] })
  t.same(asLaunches.memories, asAnn.memories)
  const withoutRoles = await searchedAs({ role_ids: [] })
  t.same(idsOf(withoutRoles.memories), [parrot])
  t.same(
    withoutRoles.kept_back.map(({ missing_tags }) => missing_tags),
    [['launch'], ['people'], []],
  )
  const asBoard = await searchedAs({ role_ids: [board, launches], limit: 2 })
  t.match(asBoard, { wildcard: true, permitted: 3, dropped: 0 })
  t.same([idsOf(asBoard.memories), idsOf(asBoard.kept_back)], [[parrot, launch], [waiting]])
})

t.test('a role that is given counts at once', async t => {
  const query = 'salary of Eve'
  await team.assignRoles('ann', ['People'])
  const { memories, kept_back: kept } = await searchedAs({ user_id: userId('ann'), query })
  t.ok(idsOf(memories).includes(salary!))
  t.same(idsOf(kept), [waiting])
  await team.assignRoles('ann', ['Launches'])
})

t.test('nothing is written: it is no request of the member', async t => {
  const stored = async () => {
    await backend.retrievals.flush()
    const documents = await storedDocuments(backend, team.vault)
    return [await storedDigests(backend), documents]
  }
  await backend.retrievals.flush()
  await findDeniedMemories(backend)
  const before = await stored()
  for (const body of [{ user_id: userId('ann'), query: 'salary' }, { role_ids: [people] }])
    await searchedAs(body)
  t.equal(await findDeniedMemories(backend), 0)
  t.same(await stored(), before)
})

t.test('who is not there, and requests that name nobody or two', async t => {
  const other = await buildTeam(backend)
  const foreign = await other.defineRole('Launches', ['launch'])
  const refused = async (body: object, status: number, error: RegExp) =>
    t.match(await admin.post(path, body), { status, body: { error, hint: String } })
  await refused({ user_id: team.org }, 404, /No such user/)
  await refused({ role_ids: [launches, foreign] }, 404, /No such role/)
  await refused({ query: 'salary' }, 400, /user_id or role_ids is required/)
  await refused({ user_id: userId('ann'), role_ids: [] }, 400, /not both/)
  t.match(await admin.post(path, { role_ids: [], query: '' }), { status: 400 })
  const stranger = createTestClient(base, other.adminKey)
  t.match(await stranger.post(path, { role_ids: [] }), { status: 404, body: { error: String } })
  const theirs = await stranger.post(`/v1/orgs/${other.org}/memories/search`, {
    user_id: userId('ann'),
  })
  t.match(theirs, { status: 404, body: { error: 'No such user' } })
  t.equal((await createTestClient(base, ann).post(path, { role_ids: [] })).status, 401)
})
