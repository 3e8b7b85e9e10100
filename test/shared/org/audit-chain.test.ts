import t from 'tap'
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eraseAccount } from '#shared/accounts/erase-account.ts'
import { mintId } from '#shared/core/ids.ts'
import { verifyAuditChain } from '#shared/org/trail/audit-chain.postgres.ts'
import {
  deleteSharedMemory,
  updateSharedMemory,
} from '#shared/org/memories/write-shared-memories.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { processEnvironment } from '#test/support/start/processes.ts'
import { buildTeam, seedTeamMemories } from '#test/support/start/team.ts'

const backend = await createTestBackend(t)
const { query } = backend.postgres

async function audited() {
  const team = await buildTeam(backend)
  const ids = await seedTeamMemories(backend, team, [
    { text: 'one' },
    { text: 'two' },
    { text: 'three' },
  ])
  const by = () => ({ operation: mintId(), actor: 'Zoë\n1\tx@example.com' })
  await updateSharedMemory(backend, team, { ...by(), id: ids[0]!, text: 'another', tags: ['a'] })
  await deleteSharedMemory(backend, team, { ...by(), id: ids[1]! })
  return team
}

t.test('an untouched chain is whole, and counts every event', async t => {
  const { org } = await audited()
  const chain = await verifyAuditChain(query, org)
  t.match(chain, { org, position: 6, broken: null })
  t.match(chain.hash, /^[0-9a-f]{64}$/)
  const empty = await buildTeam(backend)
  t.match(await verifyAuditChain(query, empty.org), { position: 0, hash: '', broken: null })
})

t.test('many at once make one chain', async t => {
  const team = await buildTeam(backend)
  const other = await buildTeam(backend)
  await Promise.all(
    Array.from({ length: 20 }, (_, n) =>
      seedTeamMemories(backend, n % 2 ? team : other, [{ text: `a ${n}` }, { text: `b ${n}` }]),
    ),
  )
  t.match(await verifyAuditChain(query, team.org), { position: 20, broken: null })
  t.match(await verifyAuditChain(query, other.org), { position: 20, broken: null })
})

t.test('the first event that was changed is named, whatever was changed', async t => {
  for (const change of [
    `actor = 'somebody else'`,
    `action = 'delete'`,
    `created_at = created_at + interval '1 microsecond'`,
    `memory = gen_random_uuid()`,
    `write = gen_random_uuid()`,
    `hash = sha256(hash)`,
    `id = gen_random_uuid()`,
  ]) {
    const { org } = await audited()
    const { rows } = await query<{ id: string }>(
      `update audit_events set ${change} where org = $1 and position = 3 returning id`,
      [org],
    )
    const broken = { position: 3, id: rows[0]!.id, fault: 'changed' }
    t.match(await verifyAuditChain(query, org), { position: 2, broken }, change)
  }
})

t.test('one that was removed, at the end too, or moved, or slipped in', async t => {
  for (const position of [1, 4, 6]) {
    const { org } = await audited()
    await query('delete from audit_events where org = $1 and position = $2', [org, position])
    t.match(await verifyAuditChain(query, org), {
      broken: { position, id: null, fault: 'missing' },
    })
  }
  const { org } = await audited()
  const foreign = await audited()
  await query('update audit_events set position = position + 100 where org = $1', [foreign.org])
  await query('update audit_events set org = $1 where org = $2 and position = 102', [
    org,
    foreign.org,
  ])
  await query('delete from audit_events where org = $1 and position = 2', [org])
  await query('update audit_events set position = 2 where org = $1 and position = 102', [org])
  t.match(await verifyAuditChain(query, org), { broken: { position: 2, fault: 'changed' } })
})

t.test('an end that was saved shows a chain that was rewritten', async t => {
  const { org } = await audited()
  const { position, hash } = await verifyAuditChain(query, org)
  await query('update audit_heads set position = 0, hash = $2 where org = $1', [
    org,
    Buffer.alloc(0),
  ])
  await query(
    `with old as (delete from audit_events where org = $1 returning *)
     insert into audit_events (id, org, memory, action, actor, write, created_at)
     select id, org, memory, action, 'nobody', write, created_at from old order by position`,
    [org],
  )
  t.match(await verifyAuditChain(query, org), { broken: null }, 'in itself it is whole')
  t.match(await verifyAuditChain(query, org, [{ org, position, hash }]), {
    broken: { position: 6, fault: 'not the one it was' },
  })
  const further = [{ org, position: 9, hash }]
  t.match(await verifyAuditChain(query, org, further), {
    broken: { position: 7, fault: 'missing' },
  })
})

t.test('the command names whole chains, saves their ends, exits 1 for a broken one', async t => {
  const { org } = await audited()
  const file = join(t.testdir(), 'ends.json')
  const run = (...args: string[]) => {
    const env = processEnvironment(backend.config)
    const ran = spawnSync(process.execPath, ['scripts/verify-audit.ts', ...args], {
      env,
      encoding: 'utf8',
    })
    return { status: ran.status, said: ran.stdout + ran.stderr }
  }
  t.match(run('--org', org, '--save', file), { status: 0, said: /whole +6 events/ })
  await query(`update audit_events set actor = 'x' where org = $1 and position = 5`, [org])
  const { rows } = await query<{ id: string }>(
    'select id from audit_events where org = $1 and position = 5',
    [org],
  )
  const { status, said } = run('--org', org, '--expect', file)
  t.equal(status, 1)
  t.match(said, `BROKEN  at 5, event ${rows[0]!.id}, is changed`)
  const { status: all, said: json } = run('--json')
  t.equal(all, 1)
  const { organizations } = JSON.parse(json) as {
    organizations: { org: string; broken: unknown }[]
  }
  t.ok(organizations.find(chain => chain.org === org)?.broken)
  const { rows: events } = await query<{ account: string }>(
    `delete from account_events where position = 1
     and account = (select account from orgs where id = $1) returning account`,
    [org],
  )
  const { account } = events[0]!
  t.match(run('--account', account), { status: 1, said: `account ${account}  BROKEN  at 1` })
  t.ok(organizations.length > 5)
  const [gone, deleted] = [await audited(), await audited()]
  const erased = mintId()
  const end = { position: 6, hash: 'a' }
  const anchors = [{ org: gone.org }, { org: deleted.org }, { account: erased }, { account: org }]
  writeFileSync(file, JSON.stringify(anchors.map(owner => ({ ...owner, ...end }))))
  await query(
    `insert into account_events (account, action, subject, actor)
     select account, 'organization.deleted', id::text, 'x' from orgs where id = $1`,
    [deleted.org],
  )
  await query('delete from orgs where id in ($1, $2)', [gone.org, deleted.org])
  await query(
    `insert into account_erasures (id, account, proof, vaults, counts)
     values ($1, $1, 'x', '{}', '{}')`,
    [erased],
  )
  const { said: missing } = run('--expect', file)
  t.match(missing, `organization ${gone.org}  BROKEN  at 1 is missing`)
  t.match(missing, `account ${org}  BROKEN  at 1 is missing`, 'no such account was erased')
  t.match(missing, `organization ${deleted.org}  erased`)
  t.match(missing, `account ${erased}  erased`)
  t.equal(run('--org', 'nonsense').status, 2)
  t.equal(run('--expect', '/nowhere').status, 2)
  t.equal(run('--help').status, 0)
})

t.test('an organization that was erased with its account is not missing', async t => {
  const folder = t.testdir()
  const [erased, removed] = [await audited(), await audited()]
  const run = (...args: string[]) =>
    spawnSync(process.execPath, ['scripts/verify-audit.ts', ...args], {
      env: processEnvironment(backend.config),
      encoding: 'utf8',
    })
  const ends = await Promise.all(
    [erased, removed].map(async ({ org, account }) => {
      const own = join(folder, `${org}.json`)
      t.equal(run('--org', org, '--save', own).status, 0)
      const [end] = JSON.parse(readFileSync(own, 'utf8')) as { org: string; owner: string }[]
      t.match(end, { org, owner: account, position: 6 })
      return end
    }),
  )
  const file = join(folder, 'ends.json')
  writeFileSync(file, JSON.stringify(ends))
  await eraseAccount(
    backend,
    { account: erased.account, keyHash: Buffer.alloc(32) },
    { id: mintId(), email: erased.email },
  )
  await query('delete from orgs where id = $1', [removed.org])
  const { stdout } = run('--expect', file)
  t.match(stdout, `organization ${erased.org}  erased  since its end was saved`)
  t.match(stdout, `organization ${removed.org}  BROKEN  at 1 is missing`)
})
