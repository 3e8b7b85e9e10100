import t from 'tap'
import { buildKey, createTestClient, type TestClient } from '#test/support/start/api.ts'
import { demandSignIn } from '#test/support/checks/alter.ts'
import { insertMemories } from '#test/support/start/insert-memories.ts'
import { startService } from '#test/support/start/start-service.ts'
import { buildTeam, seedTeamMemories } from '#test/support/start/team.ts'

const { backend, base } = await startService(t, { jobs: ['ingest', 'delete-ids'] })

const owned = 'Our shop takes parcels back within thirty days.'
const said = 'I sent my parcel with the kettle back on Monday.'
const shared = 'A parcel above thirty kilograms is fetched by the courier.'
const hidden = 'The parcel courier is paid five euros, which only the board knows.'
const member = 'ada@example.com'
const all = ['own', 'user', 'team']
const named = { 'x-memory-user': member }

type Row = { id: string; content: string; vault?: string; source: string; author?: string }

/** An account with an owner key, a user, and a team in which a member has the user's name. */
async function newWorld() {
  const team = await buildTeam(backend)
  await team.defineRole('staff', ['shop'])
  await team.defineRole('board', ['*'])
  const memberKey = await team.addMember(member, ['staff'])
  const [sharedId] = await seedTeamMemories(backend, team, [
    { text: shared, tags: ['shop'] },
    { text: hidden, tags: ['shop', 'board'] },
  ])
  const key = await buildKey(backend, team.email)
  const owner = createTestClient(base, key)
  const { body } = await owner.post('/v1/keys', { external_id: member })
  const [ownId] = await insertMemories(backend, key, [{ text: owned }])
  const [saidId] = await insertMemories(backend, body.key, [{ text: said }])
  const admin = createTestClient(base, team.adminKey)
  return {
    team,
    key,
    memberKey,
    owner,
    admin,
    userKey: body.key as string,
    sharedId,
    ownId,
    saidId,
  }
}

const ask = (
  client: TestClient,
  vaults: string[] | undefined,
  headers: Record<string, string> = {},
  limit = 10,
) =>
  client.post('/v1/memory/search', { query: 'parcel', limit, ...(vaults && { vaults }) }, headers)

const textsOf = ({ body }: { body: { memories: Row[] } }): string[] =>
  body.memories.map(({ content }) => content).sort()

/** The texts by the vault that their rows name. */
const byVault = ({ body }: { body: { memories: Row[] } }) =>
  Object.fromEntries(body.memories.map(({ content, vault }) => [content, vault]))

t.test(
  "an owner key asks its own vault, its user's and the user's team in one ranking",
  async t => {
    const { owner } = await newWorld()
    const found = await ask(owner, all, named)
    t.equal(found.status, 200, JSON.stringify(found.body))
    t.same(
      byVault(found),
      { [owned]: 'own', [said]: 'user', [shared]: 'team' },
      'no tag of the board',
    )
    t.same(found.body.vaults, all)
    const scores = found.body.memories.map(({ score }: { score: number }) => score)
    t.same(
      scores,
      scores.toSorted((one: number, other: number) => other - one),
      'best first',
    )
    t.match(
      found.body.memories.find(({ vault }: Row) => vault === 'own'),
      { author: 'owner', source: 'core' },
    )
    t.equal((await ask(owner, all, named, 1)).body.memories.length, 1, 'one limit')
    for (const [vaults, texts] of [
      [['own'], [owned]],
      [['user'], [said]],
      [['team'], [shared]],
      [
        ['own', 'team'],
        [shared, owned],
      ],
    ] as const)
      t.same(textsOf(await ask(owner, [...vaults], named)), texts.toSorted(), vaults.join())
    const usual = await ask(owner, undefined, named)
    t.same(textsOf(usual), [said])
    t.notOk('vaults' in usual.body || 'vault' in usual.body.memories[0])
    const inBody = { query: 'parcel', limit: 9, vaults: ['own', 'user'], memory_user: member }
    t.same(textsOf(await owner.post('/v1/memory/search', inBody)), [said, owned].sort())
  },
)

t.test(
  'a block tells the words of an owner as theirs, and the lines name their vaults',
  async t => {
    const { owner } = await newWorld()
    const messages = [
      { role: 'user', content: 'When do I have to send a parcel back to the shop?' },
    ]
    const { body } = await owner.post('/v1/memory/prepare', { messages, vaults: all }, named)
    t.match(body.context, /· owner\] Our shop takes parcels back/)
    t.match(body.context, /· user\] I sent my parcel/)
    t.notMatch(body.context, /only the board/)
    t.same(body.vaults, all)
    t.equal(new Set(body.memories.map(({ vault }: Row) => vault)).has('own'), true)
    const usual = await owner.post('/v1/memory/prepare', { messages }, named)
    t.notMatch(usual.body.context ?? '', /Our shop/)
  },
)

t.test("from a user's hand, and the product's, to one recalled block", async t => {
  const team = await buildTeam(backend)
  const owner = createTestClient(base, await buildKey(backend, team.email))
  const store = async (content: string, headers = {}): Promise<void> => {
    const messages = [{ role: 'user', content }]
    t.equal((await owner.post('/v1/memory/ingest?wait=true', { messages }, headers)).status, 200)
  }
  const grace = { 'x-memory-user': 'grace@example.com' }
  await team.defineRole('staff', ['garden'])
  await team.addMember('grace@example.com', ['staff'])
  await seedTeamMemories(backend, team, [
    { text: 'The greenhouse is heated at night.', tags: ['garden'] },
  ])
  await store('Orchids in the greenhouse are watered on Fridays.')
  await store('My orchid in the greenhouse is called Ruth.', grace)
  await store('My orchid in the greenhouse is called Otto.', { 'x-memory-user': 'linus' })
  const messages = [{ role: 'user', content: 'What do I have to know about the greenhouse?' }]
  const { body } = await owner.post('/v1/memory/prepare', { messages, vaults: all }, grace)
  for (const line of [/owner\] Orchids/, /user\] My orchid .* Ruth/, /\] The greenhouse is heated/])
    t.match(body.context, line)
  t.notMatch(body.context, /Otto/)
  const found = await owner.post(
    '/v1/memory/search',
    { query: 'greenhouse', limit: 9, vaults: all },
    grace,
  )
  t.same(found.body.memories.map(({ vault }: Row) => vault).sort(), all.toSorted())
})

t.test('a member key has its own vault and its team; a user of its own it has not', async t => {
  const { memberKey } = await newWorld()
  const client = createTestClient(base, memberKey)
  const own = 'My own parcel is at the neighbour.'
  await insertMemories(backend, memberKey, [{ text: own }])
  t.same(textsOf(await ask(client, undefined)), [own, shared].sort())
  t.same(byVault(await ask(client, ['own', 'team'])), { [own]: 'own', [shared]: 'team' })
  t.same(textsOf(await ask(client, ['own'])), [own])
  t.same(textsOf(await ask(client, ['team'])), [shared])
  const partly = await ask(client, ['own', 'user'])
  t.same([partly.body.vaults, textsOf(partly)], [['own'], [own]])
  t.match(partly.headers.get('x-memory-ignored-fields'), /vaults\.user/)
  t.match((await ask(client, ['own'])).body.memories[0], { role: 'user', vault: 'own' })
  t.notOk('author' in (await ask(client, ['own'])).body.memories[0], 'the member said it')
})

t.test('403 and 400: what a key does not open is not opened for it', async t => {
  const { owner, userKey } = await newWorld()
  const other = await newWorld()
  const { body: users } = await owner.post('/v1/keys', { name: 'chat', rights: 'users' })
  const chat = createTestClient(base, users.key)
  t.same(
    textsOf(await ask(chat, all, named)),
    [said],
    'a key for users opens no vault of its owner',
  )
  for (const [what, client, vaults, headers] of [
    ['a key for users', chat, ['own', 'team'], named],
    ["a user's own key", createTestClient(base, userKey), ['user', 'team'], {}],
    ['an owner key without a user', owner, ['user', 'team'], {}],
    ['a user who is no member', owner, ['team'], { 'x-memory-user': 'grace@example.com' }],
  ] as const) {
    const refused = await ask(client, [...vaults], headers)
    t.same([refused.status, refused.body.memories], [403, undefined], what)
    t.match(refused.body.hint, /shared memory of a member/)
  }
  const unknown = await ask(owner, ['theirs'], named)
  t.equal(unknown.status, 400)
  t.match(unknown.body.error, /vaults/)
  t.equal((await ask(owner, [], named)).status, 400)
  const theirs = 'The parcel of another account.'
  await insertMemories(backend, other.key, [{ text: theirs }])
  t.same(textsOf(await ask(other.owner, all, named)).length, 4, 'only its own')
  t.notMatch(JSON.stringify((await ask(owner, all, named)).body), /another account/)
})

t.test(
  'what a role, a revocation or a directory takes away is not told from the next call on',
  async t => {
    const { owner, team, admin } = await newWorld()
    const teamTexts = async (): Promise<string[]> => {
      const answer = await ask(owner, ['team'], named)
      return answer.status === 403 ? ['none'] : textsOf(answer)
    }
    await team.assignRoles(member, ['board'])
    t.same(await teamTexts(), [shared, hidden].sort())
    await team.assignRoles(member, [])
    t.same(await teamTexts(), [], 'a member without roles sees nothing that has tags')
    await team.assignRoles(member, ['staff'])
    t.same(await teamTexts(), [shared])
    const { keys } = (await admin.get(`/v1/orgs/${team.org}/keys`)).body
    const one = keys.find((item: { team_member_id: string }) => item.team_member_id === member)
    await admin.send('DELETE', `/v1/orgs/${team.org}/keys/${one.id}`)
    t.same(await teamTexts(), ['none'], 'revoked')
    t.same(textsOf(await ask(owner, all, named)), [said, owned].sort())
  },
)

t.test('an organization that demands a sign-in is opened by no owner key', async t => {
  const { owner, team } = await newWorld()
  await demandSignIn(backend, team.org)
  t.equal((await ask(owner, ['team'], named)).status, 403)
})

t.test('what is deleted is not told by the next call, in none of the vaults', async t => {
  const { owner, userKey, admin, team, ownId, saidId, sharedId } = await newWorld()
  t.equal((await ask(owner, all, named)).body.memories.length, 3)
  await owner.post('/v1/memory/delete-ids', { ids: [ownId] })
  t.same(textsOf(await ask(owner, all, named)), [said, shared].sort())
  await createTestClient(base, userKey).post('/v1/memory/delete-ids', { ids: [saidId] })
  t.same(textsOf(await ask(owner, all, named)), [shared])
  await admin.send('DELETE', `/v1/orgs/${team.org}/memories/${sharedId}`)
  t.same(textsOf(await ask(owner, all, named)), [])
})
