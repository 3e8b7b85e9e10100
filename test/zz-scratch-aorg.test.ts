import t from 'tap'
import { mintId } from '#shared/ids.ts'
import { buildAdmin, buildOrg } from '#test/support/admin.ts'
import { buildKey, clientOf, testApi, workOn, type Client } from '#test/support/api.ts'
import { testBackend } from '#test/support/backend.ts'

const backend = await testBackend(t)
const here = await testApi(t, backend)
await workOn(backend)
const say = (...args: unknown[]) => console.error('##', ...args.map(a => typeof a === 'string' ? a : JSON.stringify(a)))
async function full() {
  const o = await buildOrg(backend, here.base)
  const role = (await o.admin.post(`${o.path}/roles`, { name: 'r', allowed_tags: ['a'] })).body.role_id
  const tag = (await o.admin.post(`${o.path}/tags`, { label: 'a' })).body.tag_id
  const user = (await o.admin.post(`${o.path}/users`, { email: 'U@x.io', role_ids: [role] })).body.user_id
  const key = (await o.admin.post(`${o.path}/keys`, { team_member_id: 'u@x.io' })).body
  const mem = (await o.admin.post(`${o.path}/memories`, { text: 'hello there', tags: ['a'] })).body.mem_id
  const ev = (await o.admin.get(`${o.path}/audit`)).body.events[0].event_id
  return { ...o, role, tag, user, rawKey: key.key_id, keyId: key.id, mem, ev }
}
const A = await full(), B = await full()
t.test('x', async t => {
  t.ok(1)
  const fill = (p: string, o: any) => p.replace(':role', o.role).replace(':tag', o.tag).replace(':user', o.user).replace(':keyId', o.keyId).replace(':raw', o.rawKey).replace(':mem', o.mem).replace(':org', o.org)
  const nobodys = { role: mintId(), tag: mintId(), user: mintId(), keyId: mintId(), rawKey: 'mk_org_' + 'x'.repeat(32), mem: mintId(), org: mintId(), ev: mintId() }
  const reqs: [string, string, ((o: any) => object)?][] = [
    ['PATCH', '/roles/:role', () => ({ name: 'zz' })], ['DELETE', '/roles/:role'],
    ['PATCH', '/tags/:tag', () => ({ label: 'zz' })], ['DELETE', '/tags/:tag'],
    ['PATCH', '/users/:user', () => ({ first_name: 'zz' })], ['DELETE', '/users/:user'], ['POST', '/users/:user/memory-key', () => ({})],
    ['GET', '/keys/:keyId'], ['GET', '/keys/:raw'], ['DELETE', '/keys/:keyId'], ['DELETE', '/keys/:raw'],
    ['POST', '/role-assignments', o => ({ key_id: o.keyId, role_ids: [] })], ['POST', '/role-assignments', o => ({ key_id: o.rawKey, role_ids: [] })],
    ['POST', '/role-assignments', o => ({ team_member_id: 'q', role_ids: [o.role] })],
    ['POST', '/users', o => ({ email: 'n@x.io', role_ids: [o.role] })],
    ['PATCH', '/memories/:mem', () => ({ text: 'zz' })], ['DELETE', '/memories/:mem'], ['GET', '/memories/:mem/audit'], ['GET', '/memories/:mem/history'],
    ['POST', '/memories/:mem/restore', () => ({})], ['POST', '/memories/:mem/review', () => ({ action: 'approve' })], ['POST', '/memories/:mem/review/undo', () => ({})],
  ]
  const dump = async () => JSON.stringify([(await B.admin.get(`${B.path}/roles`)).body, (await B.admin.get(`${B.path}/tags`)).body, (await B.admin.get(`${B.path}/users`)).body, (await B.admin.get(`${B.path}/keys`)).body, (await B.admin.get(`${B.path}/memories`)).body, (await B.admin.get(`${B.path}/audit`)).body, (await B.admin.get(B.path)).body])
  const before = await dump(); const usersA = JSON.stringify((await A.admin.get(`${A.path}/users`)).body)
  for (const [m, p, b] of reqs) {
    const ask = async (base: string, o: any) => { const r = await A.admin.send(m, base + fill(p, o), b ? { body: b(o) } : {}); return `${r.status} ${JSON.stringify(r.body)}` }
    const foreign = await ask(A.path, B), none = await ask(A.path, nobodys)
    const inB = await ask(B.path, B), inNone = await ask(`/v1/orgs/${nobodys.org}`, B)
    if (foreign !== none || inB !== inNone || !foreign.startsWith('404') || !inB.startsWith('404')) say('DIFF', m, p, foreign, none, inB, inNone)
  }
  for (const [m, p, b] of [['GET', ''], ['PATCH', '', { name: 'q' }], ['DELETE', ''], ['GET', '/keys'], ['POST', '/keys', { team_member_id: 'x' }], ['GET', '/roles'], ['GET', '/users'], ['GET', '/tags'], ['GET', '/instructions'], ['PUT', '/instructions', {}], ['GET', '/policy'], ['PUT', '/policy', { redaction: null }], ['GET', '/memories'], ['POST', '/memories', { text: 'x' }], ['GET', '/audit'], ['GET', '/memories/review'], ['GET', '/debug/passes'], ['POST', '/roles', { name: 'x' }], ['POST', '/tags', { label: 'x' }]] as const) {
    const r1 = await A.admin.send(m, B.path + p, b ? { body: b } : {}), r2 = await A.admin.send(m, `/v1/orgs/${nobodys.org}${p}`, b ? { body: b } : {}), r3 = await A.admin.send(m, `/v1/orgs/not-an-id${p}`, b ? { body: b } : {})
    if (r1.status !== 404 || JSON.stringify(r1.body) !== JSON.stringify(r2.body) || r3.status !== 404) say('DIFF', m, p, r1.status, r1.body, r2.status, r2.body, r3.status, r3.body)
  }
  say('restore foreign event', (await A.admin.post(`${A.path}/memories/${A.mem}/restore`, { event_id: B.ev })).status)
  say('unchanged', before === await dump(), usersA === JSON.stringify((await A.admin.get(`${A.path}/users`)).body))
  // cursors across orgs
  for (const o of [A, B]) await o.admin.post(`${o.path}/memories`, { items: [{ text: 'one' }, { text: 'two' }, { text: 'three' }] })
  const c = (await B.admin.get(`${B.path}/memories?limit=1`)).body.next_cursor
  say('cursor of B in A', (await A.admin.get(`${A.path}/memories?limit=1&cursor=${c}`)).status)
  say('cursor of B in list', (await clientOf(here.base, A.rawKey).get(`/v1/memory/list?cursor=${c}`)).status)
  // rotated memory-key
  const mk1 = (await A.admin.post(`${A.path}/users/${A.user}/memory-key`)).body, mk2 = (await A.admin.post(`${A.path}/users/${A.user}/memory-key`)).body
  say('rotated', mk1.rotated, mk2.rotated, (await clientOf(here.base, mk1.key).get('/v1/memory/stats')).status, (await clientOf(here.base, mk2.key).get('/v1/memory/stats')).status)
  const std = clientOf(here.base, mk2.key)
  say('std search', (await std.post('/v1/memory/search', { query: 'hello there', limit: 5 })).body.totalMemories, 'mint', (await std.post('/v1/keys', {})).status, 'rotate', (await std.post('/v1/keys/rotate', {})).status, 'pk', (await std.get('/v1/account/provider-keys')).status)
  // races: rotate x 8
  const rs = await Promise.all(Array.from({ length: 8 }, () => A.admin.post(`${A.path}/users/${A.user}/memory-key`)))
  const live = (await Promise.all(rs.map(r => clientOf(here.base, r.body.key).get('/v1/memory/stats')))).filter(r => r.status === 200).length
  say('8 rotations, live', live)
  const mks = await Promise.all(Array.from({ length: 8 }, () => A.admin.post(`${A.path}/keys`, { team_member_id: 'newbie@x.io' })))
  say('8 mints', mks.map(m => m.status), (await A.admin.get(`${A.path}/users`)).body.users.filter((u: any) => u.email === 'newbie@x.io').length)
  const roles8 = await Promise.all(Array.from({ length: 8 }, () => A.admin.post(`${A.path}/roles`, { name: 'same' })))
  say('8 roles', roles8.map(m => m.status))
  const orgs8 = await Promise.all(Array.from({ length: 6 }, () => A.admin.post(`/v1/orgs`, { name: 'same' })))
  say('6 orgs', orgs8.map(m => m.status))
  const idem = await Promise.all(Array.from({ length: 6 }, () => A.admin.post(`${A.path}/keys`, { team_member_id: 'idem' }, { 'idempotency-key': 'k' })))
  say('idem', idem.map(m => m.status), new Set(idem.filter(m => m.status === 201).map(m => m.body.key_id)).size)
  const userRole = await Promise.all([A.admin.send('DELETE', `${A.path}/roles/${A.role}`), ...Array.from({ length: 5 }, (_, i) => A.admin.post(`${A.path}/users`, { email: `race${i}@x.io`, role_ids: [A.role] }))])
  say('role deletion vs user create', userRole.map(m => m.status))
  // review races
  const low = (await A.admin.post(`${A.path}/memories`, { text: 'unsure', tags: ['a'], confidence: 0.3 })).body.mem_id
  const rv = await Promise.all(['approve', 'dismiss', 'approve', 'dismiss'].map(action => A.admin.post(`${A.path}/memories/${low}/review`, { action })))
  say('review race', rv.map(r => r.status), (await A.admin.get(`${A.path}/memories/${low}/audit`)).body.events.map((e: any) => e.action))
  const ds = await Promise.all(Array.from({ length: 5 }, () => A.admin.send('DELETE', `${A.path}/memories/${low}`)))
  say('delete race', ds.map(r => r.status), (await A.admin.get(`${A.path}/memories/${low}/audit`)).body.events.map((e: any) => e.action))
  // user deletion
  const uop = clientOf(here.base, A.rawKey)
  await uop.post('/v1/memory/ingest?wait=true', { messages: [{ role: 'user', content: 'sess canary' }], session_id: 'SESSIONCANARY' })
  await A.admin.send('DELETE', `${A.path}/users/${A.user}`)
  say('deleted user keys', (await uop.get('/v1/memory/stats')).status, (await clientOf(here.base, rs.at(-1)!.body.key).get('/v1/memory/stats')).status)
  say('keys listing', (await A.admin.get(`${A.path}/keys?q=u@x.io`)).body.keys.length)
  for (const h of [{ 'x-admin-key': A.key }, { 'x-dashboard-key': A.key }, { authorization: `bearer ${A.key}` }, { authorization: A.key }, { authorization: `Bearer ${A.key}:read` }, { 'x-memory-key': A.key }, { 'x-api-key': A.key }, { authorization: `Bearer ${A.rawKey}`, 'x-admin-key': A.key }, { 'x-admin-key': 'mk_admin_' + 'a'.repeat(32), 'x-dashboard-key': A.key }, { 'x-admin-email': A.email }] as any[])
    say(Object.keys(h).join('+'), (await fetch(here.base + '/v1/orgs', { headers: h })).status)
  for (const p of ['/v1/memory/stats', '/v1/memory/list', '/v1/keys', '/v1/operations', '/v1/models'])
    say('admin on', p, (await fetch(here.base + p, { headers: { authorization: `Bearer ${A.key}` }, method: p === '/v1/keys' ? 'POST' : 'GET' })).status)
  // owner's memory key must not see the member's
  await new Promise(r => setTimeout(r, 500))
  const owner = await buildKey(backend, A.email)
  const ops = (await clientOf(here.base, owner).get('/v1/operations?limit=200')).body.items
  say('owner ops', ops.map((o: any) => [o.kind, o.session_id, o.state]))
  say('owner on member key stats', (await clientOf(here.base, owner).get(`/v1/memory/${mks[0]!.body.key_id}/stats`)).status)
  say('hdrs', [...(await fetch(here.base + '/v1/orgs', { headers: { 'x-admin-key': A.key } })).headers])
})
