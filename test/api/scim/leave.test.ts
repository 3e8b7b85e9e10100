import t from 'tap'
import { sweepAll } from '#workers/sweep-all.ts'
import { buildOrg } from '#test/support/start/admin.ts'
import { createTestClient } from '#test/support/start/api.ts'
import { startIdentityProvider } from '#test/support/doubles/identity-provider.ts'
import { connectMcp } from '#test/support/start/mcp.ts'
import {
  FormBrowser,
  LoginClient,
  registerClient,
  startOAuthService,
  startSecondProcess,
  useTool,
} from '#test/support/start/oauth.ts'
import { connectDirectory, patchOf } from '#test/support/start/scim.ts'
import { enterConsole, readLoginChoices, signInAt } from '#test/support/start/sign-in.ts'

/** A person comes by the directory, and leaves: each door is open before and shut with the answer to the directory. */

const ada = 'ada@example.com'
const provider = await startIdentityProvider(t, { ada: { email: ada, email_verified: true } })
const { backend, base } = await startOAuthService(t, { env: provider.env })
provider.open(`${base}/console/login/callback`)
const other = await startSecondProcess(t, backend)
const { admin, path, org, email: adminEmail } = await buildOrg(backend, base)
const { scim, token } = await connectDirectory(admin, path)
const user = { userName: ada, name: { givenName: 'Ada', familyName: 'Byron' }, externalId: 'a1' }
const member = (await scim('POST', '/Users', user)).body
const address = `/Users/${member.id}`

type Event = { action: string; actor: string; subject: string; org_id: string }
const eventsOf = async (...actions: string[]): Promise<Event[]> =>
  ((await admin.get('/v1/account/events?limit=100')).body.items as Event[]).filter(({ action }) =>
    actions.includes(action),
  )

/** Lets an application in by signing in. @returns its tokens and a way to renew them. */
async function connectApplication() {
  const client = new LoginClient(base, await registerClient(base))
  const page = await client.begin()
  const asked = await (await client.browser.open(page)).text()
  const [, link] = /href="(\/console\/login\?application=[^"]+)"/.exec(asked)!
  const shown = await (await signInAt(client.browser, 'ada', base + link!)).text()
  const choice = /name="choice"\s+value="([^"]+)"/.exec(shown)![1]!
  const fields: [string, string][] = [
    ['choice', choice],
    ['decision', 'allow'],
    ['scope', 'read'],
  ]
  const { searchParams } = await client.follow(await client.browser.submit(page, fields))
  const { body } = await client.exchange(searchParams.get('code')!)
  return { client, tokens: body as { access_token: string; refresh_token: string } }
}

const statusOf = async (key: string, at = base): Promise<number> =>
  (await createTestClient(at, key).get('/v1/memory/stats')).status

t.test('who comes signs in without an admin who mints a key', async t => {
  const consoleKey = (await enterConsole(base, 'ada', 'member'))!
  t.equal(await statusOf(consoleKey), 200)
  t.equal(await enterConsole(base, 'ada', 'member'), consoleKey, 'one lasting key')
  t.match(await eventsOf('user.created'), [{ actor: `${token.slice(0, 6)}…${token.slice(-4)}` }])
})

t.test(
  'who is switched off is out by every door at once, and comes back by signing in',
  async t => {
    const key = (await enterConsole(base, 'ada', 'member'))!
    const program = (await admin.post(`${path}/keys`, { team_member_id: ada })).body.memory_key
    const own = (await admin.post(`${path}/users/${member.id}/memory-key`)).body.memory_key
    const { body: reviewer } = await admin.post(`${path}/reviewers`, { email: ada })
    const { client, tokens } = await connectApplication()
    const mcp = await connectMcp(t, base, program)
    const link = await fetch(`${base}/console/login/links`, {
      method: 'POST',
      headers: { 'x-memory-key': program },
    })
    const { path: linkPath } = (await link.json()) as { path: string }
    const signedIn = new FormBrowser()
    await signInAt(signedIn, 'ada', `${base}/console/login`)
    t.equal((await readLoginChoices(signedIn, base)).choices.length, 3, 'two keys and the reviews')
    const reviews = () =>
      createTestClient(base, reviewer.reviewer_key).get(`${path}/memories/review`)
    const openLink = () =>
      fetch(`${base}/console/login/links/open`, {
        method: 'POST',
        body: JSON.stringify({ secret: linkPath.replace('/console#/open/', ''), look: true }),
      })
    for (const one of [key, program, own]) {
      t.equal(await statusOf(one), 200)
      t.equal(await statusOf(one, other), 200, 'the other process has looked it up')
    }
    t.equal((await reviews()).status, 200)
    t.equal((await useTool(base, tokens.access_token, 'stats')).status, 200)
    t.notOk((await mcp.callTool({ name: 'stats', arguments: {} })).isError)
    t.equal((await openLink()).status, 200)

    const off = await scim(
      'PATCH',
      address,
      patchOf({ op: 'Replace', path: 'active', value: 'False' }),
    )
    t.match(off, { status: 200, body: { active: false } })
    for (const at of [base, other])
      for (const one of [key, program, own]) t.equal(await statusOf(one, at), 401, 'keys')
    t.equal((await reviews()).status, 401, 'the review queue')
    t.equal((await useTool(base, tokens.access_token, 'stats')).status, 401, 'an application')
    t.equal((await useTool(other, tokens.access_token, 'stats')).status, 401)
    await t.rejects(mcp.callTool({ name: 'stats', arguments: {} }), 'a session of MCP')
    t.equal((await client.refresh(tokens.refresh_token)).status, 400, 'a token to renew it')
    t.equal((await openLink()).status, 403, 'a link of the console')
    t.same((await readLoginChoices(signedIn, base)).choices, [], 'a browser that is signed in')
    t.equal(await enterConsole(base, 'ada', 'member'), undefined, 'a sign-in')
    t.equal(await enterConsole(base, 'ada', 'reviewer'), undefined)
    t.equal((await admin.post(`${path}/keys`, { team_member_id: ada })).status, 409, 'a new key')
    t.equal((await admin.post(`${path}/users/${member.id}/memory-key`)).status, 409)

    const { masked_key: masked } = (await admin.get(`${path}/keys`)).body.keys[0]
    t.ok(masked)
    const ended = await eventsOf('key.revoked', 'user.suspended', 'reviewer.deleted')
    t.same(
      ended.map(({ action }) => action).toSorted(),
      ['key.revoked', 'key.revoked', 'key.revoked', 'reviewer.deleted', 'user.suspended'],
      'the audit has each',
    )
    for (const { actor } of ended) t.equal(actor, `${token.slice(0, 6)}…${token.slice(-4)}`)
    const { users } = (await admin.get(`${path}/users`)).body
    t.match(users, [{ user_id: member.id, active: false, has_memory_key: false }])

    await scim('PATCH', address, patchOf({ op: 'replace', value: { active: true } }))
    const again = (await enterConsole(base, 'ada', 'member'))!
    t.not(again, key)
    t.equal(await statusOf(again), 200, 'the vault is there')
    for (const one of [key, program, own]) t.equal(await statusOf(one), 401, 'an old key stays out')
    t.match(await eventsOf('user.resumed'), [{ subject: member.id, org_id: org }])
  },
)

t.test(
  'a member who is removed leaves no vault, and no one of another email is touched',
  async t => {
    const key = (await enterConsole(base, 'ada', 'member'))!
    const bob = (await admin.post(`${path}/keys`, { team_member_id: 'bob' })).body.memory_key
    t.equal((await scim('DELETE', address)).status, 204)
    t.equal(await statusOf(key), 401)
    t.equal(await statusOf(bob), 200)
    t.equal((await scim('GET', address)).status, 404)
    t.equal((await scim('DELETE', address)).status, 404)
    t.match(await eventsOf('user.deleted'), [{ subject: member.id }])
    await sweepAll(backend)
  },
)

t.test('where a sign-in is demanded nothing else opens a vault or the reviews', async t => {
  const lasting = (await admin.post(`${path}/keys`, { team_member_id: ada })).body.memory_key
  const { body: reviewer } = await admin.post(`${path}/reviewers`, { email: ada })
  const reviewsBy = async (key: string) =>
    (await createTestClient(base, key).get(`${path}/memories/review`)).status
  const put = (body: object) => admin.send('PUT', `${path}/directory`, { body })
  t.equal(await statusOf(lasting), 200)
  const demanded = { sign_in_required: true, sign_in_hours: 24 }
  t.match(await put(demanded), { status: 200, body: demanded })
  t.match(await createTestClient(base, lasting).get('/v1/memory/stats'), {
    status: 401,
    body: { error: /demands a sign-in/, hint: /Sign in again/ },
  })
  const stranger = await createTestClient(base, `mk_${'a'.repeat(32)}`).get('/v1/memory/stats')
  t.match(stranger, { status: 401, body: { error: 'Invalid Memory Key' } })
  t.equal(await statusOf(lasting, other), 401)
  t.equal(await reviewsBy(reviewer.reviewer_key), 401)

  const key = (await enterConsole(base, 'ada', 'member'))!
  t.equal(await statusOf(key), 200)
  t.not(key, lasting)
  const reviewing = (await enterConsole(base, 'ada', 'reviewer'))!
  t.equal(await reviewsBy(reviewing), 200)
  const { tokens } = await connectApplication()
  t.equal((await useTool(base, tokens.access_token, 'stats')).status, 200)

  for (const one of [key, reviewing]) {
    const headers = { authorization: `Bearer ${one}` }
    const end = await fetch(`${base}/console/login/end`, { method: 'POST', headers })
    t.equal(end.status, 204)
  }
  t.equal(await statusOf(key), 401, 'signed out')
  t.equal(await reviewsBy(reviewing), 401)
  t.equal((await useTool(base, tokens.access_token, 'stats')).status, 200, 'another sign-in')

  t.match(await put({ sign_in_required: false }), { body: { sign_in_hours: 24 } })
  t.equal(await statusOf(lasting), 200)
  const [last] = await eventsOf('directory.changed')
  t.match(last, {
    actor: adminEmail,
    before: { sign_in_required: true },
    after: { sign_in_required: false },
  })
})
