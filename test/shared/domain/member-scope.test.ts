import { AsyncLocalStorage } from 'node:async_hooks'
import fc from 'fast-check'
import t from 'tap'
import { authenticateMemoryKey } from '#shared/access/caller.ts'
import { toSharedVaultScope, type MemberScope } from '#shared/domain/member-scope.ts'
import { startTestApi } from '#test/support/start/api.ts'
import { buildAdmin, buildOrg } from '#test/support/start/admin.ts'
import { createTestBackend } from '#test/support/start/backend.ts'

const backend = await createTestBackend(t)
const second = await createTestBackend(t, { config: backend.config })
const { base } = await startTestApi(t, backend)
const { admin, org, path, orgKey } = await buildOrg(backend, base)

/** What a key may see, as both processes find it. */
async function scopeOf(key: string): Promise<MemberScope | null> {
  const [one, two] = await Promise.all(
    [backend, second].map(async ({ findKey, config }) => {
      const { memberScope } = await authenticateMemoryKey(findKey, config.keyPepper, {
        key,
        mode: 'on',
      })
      return memberScope && { ...memberScope, allowedTags: memberScope.allowedTags.toSorted() }
    }),
  )
  t.strictSame(one, two)
  return one!
}

const memberKey = async (team_member_id: string): Promise<string> =>
  (await admin.post(`${path}/keys`, { team_member_id })).body.key_id

const role = async (name: string, allowed_tags: string[]): Promise<string> =>
  (await admin.post(`${path}/roles`, { name, allowed_tags })).body.role_id

t.test('a member is who their key says, with what their roles allow together', async t => {
  const key = await memberKey('ann@example.com')
  const { users } = (await admin.get(`${path}/users`)).body
  const scope = await scopeOf(key)
  t.match(scope, {
    org,
    memberId: users[0].user_id,
    teamMemberId: 'ann@example.com',
    allowedTags: [],
    wildcard: false,
  })
  const { rows } = await backend.postgres.query<{ vault: string; epoch: number; revision: number }>(
    `select o.vault, v.epoch, v.revision::int from orgs o join vaults v on v.id = o.vault
     where o.id = $1`,
    [org],
  )
  t.strictSame(toSharedVaultScope(scope!), rows[0])
})

t.test('every change counts from the next request on, on every process', async t => {
  const key = await memberKey('bob@example.com')
  const [books, tax, all] = [
    await role('Books', ['money', 'tax']),
    await role('Tax', ['tax', 'law']),
    await role('All', ['*', 'law']),
  ]
  const assign = (role_ids: string[]) =>
    admin.post(`${path}/role-assignments`, { team_member_id: 'bob@example.com', role_ids })
  const seen = async () => {
    const scope = (await scopeOf(key))!
    return [scope.allowedTags.join(), scope.wildcard]
  }
  let version = (await scopeOf(key))!.policyVersion
  const raised = async () => {
    const now = (await scopeOf(key))!.policyVersion
    t.ok(now > version)
    version = now
  }
  await assign([books, tax])
  t.strictSame(await seen(), ['law,money,tax', false])
  await raised()
  await admin.send('PATCH', `${path}/roles/${tax}`, { body: { allowed_tags: ['law'] } })
  t.strictSame(await seen(), ['law,money,tax', false])
  await admin.send('PATCH', `${path}/roles/${books}`, { body: { allowed_tags: ['money'] } })
  t.strictSame(await seen(), ['law,money', false])
  await raised()
  await assign([all])
  t.strictSame(await seen(), ['law', true])
  await raised()
  const { body: tag } = await admin.post(`${path}/tags`, { label: 'law' })
  await raised()
  await admin.send('PATCH', `${path}/tags/${tag.tag_id}`, { body: { label: 'Recht' } })
  t.strictSame(await seen(), ['Recht,law', true], 'memories may still bear the old label')
  await admin.send('DELETE', `${path}/tags/${tag.tag_id}`)
  t.strictSame(await seen(), ['', true])
  await admin.send('DELETE', `${path}/roles/${all}`)
  t.strictSame(await seen(), ['', false])
  await raised()
})

t.test('a key that is no member key has no shared memory', async t => {
  const { users } = (await admin.get(`${path}/users`)).body
  const { body } = await admin.post(`${path}/users/${users[0].user_id}/memory-key`)
  t.equal(await scopeOf(body.key), null, 'the standard key opens the private vault alone')
  const { memoryKey } = await buildAdmin(backend)
  t.equal(await scopeOf(memoryKey), null)
})

t.test("the organization's own key is no member: it sees what has no tags", async t => {
  t.match(await scopeOf(orgKey), { org, memberId: org, allowedTags: [], wildcard: false })
  const { findKey, config } = backend
  for (const mode of ['on', 'read', 'write', 'off'] as const) {
    const { permissions } = await authenticateMemoryKey(findKey, config.keyPepper, {
      key: orgKey,
      mode,
    })
    t.equal(permissions.store, false)
    t.equal(permissions.retrieve, mode === 'on' || mode === 'read')
  }
})

t.test('many keys in one read: each finds its own', async t => {
  const other = await buildOrg(backend, base)
  const keys = [await memberKey('m1'), await memberKey('m2'), orgKey, other.orgKey]
  const { memoryKey } = await buildAdmin(backend)
  const found = await Promise.all(
    [...keys, memoryKey, ...keys].map(key =>
      authenticateMemoryKey(backend.findKey, backend.config.keyPepper, { key, mode: 'on' }),
    ),
  )
  const members = found.map(({ memberScope }) => memberScope?.teamMemberId)
  t.strictSame(members, ['m1', 'm2', 'Acme', 'Acme', undefined, 'm1', 'm2', 'Acme', 'Acme'])
  t.equal(found[2]!.memberScope!.org, org)
  t.equal(found[3]!.memberScope!.org, other.org)
  t.equal(new Set(found.slice(0, 5).map(({ scope }) => scope.vault)).size, 5)
})

t.test('any roles of any members: the union of what they allow', async t => {
  const { admin, path } = await buildOrg(backend, base)
  const tag = fc.constantFrom('a', 'b', 'c', 'd', '*', 'A', "'; --", '{x}')
  const model = fc.record({
    roles: fc.array(fc.uniqueArray(tag, { maxLength: 4 }), { minLength: 1, maxLength: 4 }),
    members: fc.array(fc.array(fc.nat(3), { maxLength: 4 }), { minLength: 1, maxLength: 3 }),
  })
  let run = 0
  await fc.assert(
    fc.asyncProperty(model, async ({ roles, members }) => {
      run++
      const ids: string[] = []
      for (const [n, allowed_tags] of roles.entries()) {
        const body = { name: `r${run}-${n}`, allowed_tags }
        ids.push((await admin.post(`${path}/roles`, body)).body.role_id)
      }
      for (const [n, held] of members.entries()) {
        const team_member_id = `m${run}-${n}`
        const indexes = held.map(index => index % roles.length)
        const role_ids = indexes.map(index => ids[index]!)
        await admin.post(`${path}/role-assignments`, { team_member_id, role_ids })
        const { body } = await admin.post(`${path}/keys`, { team_member_id })
        const allowed = new Set(indexes.flatMap(index => roles[index]!))
        const { allowedTags, wildcard } = (await scopeOf(body.key_id))!
        t.strictSame(allowedTags, [...allowed].filter(label => label !== '*').toSorted())
        t.equal(wildcard, allowed.has('*'))
      }
    }),
    { numRuns: 15 },
  )
})

t.test('a key and all it may see are one read of Postgres', async t => {
  const key = await memberKey('counted')
  let statements = 0
  // What the process does by the clock is not counted.
  const asking = new AsyncLocalStorage<boolean>()
  const { query } = second.postgres
  second.postgres.query = (...args) => {
    if (asking.getStore()) statements++
    return query(...args)
  }
  const found = await asking.run(true, () =>
    authenticateMemoryKey(second.findKey, second.config.keyPepper, { key, mode: 'on' }),
  )
  t.match(found, { memberScope: { teamMemberId: 'counted' } })
  second.postgres.query = query
  t.equal(statements, 1)
})
