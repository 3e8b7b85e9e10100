import t from 'tap'
import { startIdentityProvider } from '#test/support/doubles/identity-provider.ts'
import { buildOrg } from '#test/support/start/admin.ts'
import { createTestClient } from '#test/support/start/api.ts'
import { startOAuthService } from '#test/support/start/oauth.ts'
import { connectDirectory, patchOf } from '#test/support/start/scim.ts'
import { enterConsole } from '#test/support/start/sign-in.ts'

const people = {
  ada: {
    email: 'ada@example.com',
    email_verified: true,
    groups: ['Finance', 'People'] as string[],
  },
}
const provider = await startIdentityProvider(t, people)
const { backend, base } = await startOAuthService(t, {
  env: { ...provider.env, OIDC_GROUPS_CLAIM: 'groups' },
})
provider.open(`${base}/console/login/callback`)
const { admin, path } = await buildOrg(backend, base)
const { scim } = await connectDirectory(admin, path)
const roleOf = async (name: string) => (await admin.post(`${path}/roles`, { name })).body.role_id
const [money, people2, open] = [await roleOf('Money'), await roleOf('People'), await roleOf('Open')]
const put = (body: object) => admin.send('PUT', `${path}/directory`, { body })
const grant = (group: string, role_ids: string[], reviews = false) => ({ group, role_ids, reviews })
const userOf = async (id: string) =>
  (await admin.get(`${path}/users`)).body.users.find(
    (user: { user_id: string }) => user.user_id === id,
  )
const rolesOf = async (id: string): Promise<string[]> => (await userOf(id)).role_ids
const reviewers = async () => (await admin.get(`${path}/reviewers`)).body.reviewers
const newest = async () => (await admin.get('/v1/account/events')).body.items[0]

const create = async (userName: string): Promise<string> =>
  (await scim('POST', '/Users', { userName })).body.id
const bob = await create('bob@example.com')
const cem = await create('cem')
const group = (
  await scim('POST', '/Groups', {
    displayName: 'Finance',
    externalId: 'g-1',
    members: [{ value: bob }],
  })
).body.id

t.test('a group gives its members roles, by its name or the id of the directory', async t => {
  t.same(await rolesOf(bob), [])
  const { status, body } = await put({ grants: [grant('FINANCE', [money])] })
  t.equal(status, 200)
  t.match(body, {
    grants: [{ group: 'FINANCE', role_ids: [money], reviews: false }],
    groups: [{ group_id: group, name: 'Finance', external_id: 'g-1', members: 1 }],
  })
  t.same(await rolesOf(bob), [money])
  t.match(await newest(), { action: 'directory.changed' })
  const { items } = (await admin.get('/v1/account/events?action=role.assigned')).body
  t.match(items[0], { subject: bob, before: { roles: [] }, after: { roles: ['Money'] } })
  await put({ grants: [grant('g-1', [money, open])] })
  t.same((await rolesOf(bob)).toSorted(), [money, open].toSorted())
  t.same(await rolesOf(cem), [])
})

t.test('who joins and leaves a group gets and loses its roles; those of an admin stay', async t => {
  await put({ grants: [grant('Finance', [money])] })
  await admin.send('PATCH', `${path}/users/${cem}`, { body: { role_ids: [open] } })
  const members = (op: string) =>
    scim('PATCH', `/Groups/${group}`, patchOf({ op, path: 'members', value: [{ value: cem }] }))
  await members('Add')
  t.same(await rolesOf(cem), [open, money])
  t.match(await newest(), {
    action: 'group.changed',
    before: { members: ['bob@example.com'] },
    after: { members: ['bob@example.com', 'cem'] },
  })
  t.match((await scim('GET', `/Users/${cem}`)).body.groups, [{ value: group, display: 'Finance' }])
  const taken = await admin.send('PATCH', `${path}/users/${cem}`, { body: { role_ids: [open] } })
  t.match(taken, { status: 409, body: { error: /group of the directory gives the member Money/ } })
  const kept = await admin.send('PATCH', `${path}/users/${cem}`, { body: { role_ids: [money] } })
  t.match(kept, { status: 200, body: { role_ids: [money] } })
  await members('Remove')
  t.same(await rolesOf(cem), [], 'the group gave it, whatever an admin named')
  await scim('PATCH', `/Users/${bob}`, patchOf({ op: 'replace', path: 'active', value: false }))
  t.same(await rolesOf(bob), [])
  await scim('PATCH', `/Users/${bob}`, patchOf({ op: 'replace', path: 'active', value: true }))
  t.same(await rolesOf(bob), [money])
})

t.test(
  'a group of reviewers: they sign in for the queue, and are none once they leave it',
  async t => {
    await put({ grants: [grant('People', [], true)] })
    const ada = await create('ada@example.com')
    t.same(await reviewers(), [])
    const key = (await enterConsole(base, 'ada', 'reviewer'))!
    t.match(await reviewers(), [{ email: 'ada@example.com', masked_key: '' }])
    const reviews = () => createTestClient(base, key).get(`${path}/memories/review`)
    t.equal((await reviews()).status, 200)
    t.match((await admin.get('/v1/account/events?action=reviewer.created')).body.items, [
      { actor: 'ada@example.com', after: { email: 'ada@example.com' } },
    ])
    await put({ grants: [grant('People', [people2], true)] })
    t.same(await rolesOf(ada), [people2])
    people.ada.groups = ['Finance']
    t.ok(await enterConsole(base, 'ada', 'member'), 'the next sign-in names other groups')
    t.same(await reviewers(), [])
    t.same(await rolesOf(ada), [])
    t.equal((await reviews()).status, 401)
  },
)

t.test(
  'a group that is removed gives nothing; a role that is removed is granted no more',
  async t => {
    await put({ grants: [grant('Finance', [money, open])] })
    t.equal((await rolesOf(bob)).length, 2)
    await admin.send('DELETE', `${path}/roles/${open}`)
    t.match((await admin.get(`${path}/directory`)).body.grants, [{ role_ids: [money] }])
    t.same(await rolesOf(bob), [money])
    t.equal((await scim('DELETE', `/Groups/${group}`)).status, 204)
    t.same(await rolesOf(bob), [])
  },
)

t.test('what a grant may not be', async t => {
  t.equal((await put({ grants: [grant('Finance', [crypto.randomUUID()])] })).status, 404)
  t.match((await put({ grants: [grant('Finance', [])] })).body, { error: /gets nothing/ })
  const twice = [grant('Finance', [money]), grant('finance', [money])]
  t.match((await put({ grants: twice })).body, { error: /named twice/ })
  const foreign = await buildOrg(backend, base)
  const { body: role } = await foreign.admin.post(`${foreign.path}/roles`, { name: 'Money' })
  t.equal((await put({ grants: [grant('Finance', [role.role_id])] })).status, 404)
  t.equal((await foreign.admin.get(`${path}/directory`)).status, 404)
})
