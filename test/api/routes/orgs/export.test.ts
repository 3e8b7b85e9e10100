import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import type { CommandStartedEvent } from 'mongodb'
import t from 'tap'
import { verifyExportFile } from '#shared/accounts/verify-export-file.ts'
import { commandListeners } from '#shared/storage/mongo/connect.ts'
import { connectDirectory } from '#test/support/start/scim.ts'
import { buildOrg } from '#test/support/start/admin.ts'
import { createTestClient, type TestClient } from '#test/support/start/api.ts'
import { insertStoredMemories } from '#test/support/checks/stored-memories.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { insertUsers } from '#test/support/checks/alter.ts'
import { sharedVaultOf } from '#test/support/checks/observe.ts'
import { compileCache } from '#test/support/start/compile-cache.ts'
import { startService } from '#test/support/start/start-service.ts'

const commands: CommandStartedEvent[] = []
commandListeners.push((event: CommandStartedEvent) => void commands.push(event))
const { backend, base, newClient } = await startService(t)

type Line = { type: string; [field: string]: unknown }

const linesOf = async (admin: TestClient, path: string, query = ''): Promise<Line[]> =>
  (await admin.get(`${path}/export${query}`)).body

/** An organization with some of everything, and what must not be told of it. */
async function furnished() {
  const built = await buildOrg(backend, base)
  const { admin, path } = built
  await admin.post(`${path}/tags`, { label: 'finance', question: 'Is it about money?' })
  const role = (await admin.post(`${path}/roles`, { name: 'Books', allowed_tags: ['finance'] }))
    .body
  const key = (await admin.post(`${path}/keys`, { team_member_id: 'ben@example.com' })).body
  await admin.post(`${path}/role-assignments`, {
    team_member_id: 'ben@example.com',
    role_ids: [role.role_id],
  })
  const user = (await admin.get(`${path}/users`)).body.users[0].user_id
  const standard = (await admin.post(`${path}/users/${user}/memory-key`)).body.key
  await admin.send('PUT', `${path}/instructions`, { body: { custom: 'Keep numbers.' } })
  await admin.send('PUT', `${path}/policy`, { body: { redaction: { mode: 'redact' } } })
  const items = [
    { text: 'The budget is fixed', tags: ['finance'] },
    { text: 'We meet on Mondays', confidence: 0.4 },
    { text: 'It was a mistake' },
  ]
  const seeded = (await admin.post(`${path}/memories`, { items })).body.items
  const gone = seeded.find(({ text }: { text: string }) => text.includes('mistake')).mem_id
  await admin.send('DELETE', `${path}/memories/${gone}`)
  const ben = createTestClient(base, key.memory_key)
  const said = [{ role: 'user', content: 'what Ben says to himself' }]
  await ben.post('/v1/memory/ingest?wait=true', { messages: said })
  return { ...built, user, seeded, secrets: [key.memory_key, standard, built.orgKey, built.key] }
}

t.test('200: the groups of a directory with their members, and what they give', async t => {
  const { admin, path, user } = await furnished()
  const role = (await admin.post(`${path}/roles`, { name: 'Sales' })).body.role_id
  const grants = [{ group: 'Sellers', role_ids: [role], reviews: true }]
  await admin.send('PUT', `${path}/directory`, { body: { sign_in_hours: 8, grants } })
  const { scim } = await connectDirectory(admin, path)
  const members = [{ value: user }]
  const group = { displayName: 'Sellers', externalId: 'g7', members }
  const { body: made } = await scim('POST', '/Groups', group)
  const lines = await linesOf(admin, path)
  t.match(
    lines.filter(({ type }) => ['directory', 'group'].includes(type)),
    [
      { type: 'directory', sign_in_required: false, sign_in_hours: 8, grants },
      { type: 'group', group_id: made.id, name: 'Sellers', external_id: 'g7', user_ids: [user] },
    ],
  )
})

t.test('200: everything of an organization in its order, and no secret', async t => {
  const { admin, path, org, email, user, seeded, secrets } = await furnished()
  const foreign = await furnished()
  const { status, headers } = await admin.get(`${path}/export`)
  t.equal(status, 200)
  t.match(headers.get('content-type'), /x-ndjson/)
  const lines = await linesOf(admin, path)
  t.same(
    [...new Set(lines.map(({ type }) => type))],
    [
      'organization',
      'instructions',
      'policy',
      'role',
      'tag',
      'user',
      'member_key',
      'directory',
      'shared_memory',
      'audit_event',
      'end',
    ],
  )
  const of = (type: string) => lines.filter(line => line.type === type)
  t.match(of('organization'), [{ org_id: org, owner_email: email }])
  t.match(of('instructions'), [{ custom: 'Keep numbers.' }])
  t.match(of('policy'), [{ decided_by: 'organization', redaction: { mode: 'redact' } }])
  t.match(of('user'), [{ user_id: user, roles: [{ name: 'Books' }], has_memory_key: true }])
  t.same(
    of('member_key')
      .map(({ kind, user_id: whose }) => [kind, whose])
      .toSorted(),
    [
      ['member', user],
      ['organization', null],
      ['user', user],
    ],
  )
  t.match(
    of('shared_memory').map(({ text }) => text),
    ['The budget is fixed', 'We meet on Mondays'],
  )
  t.match(of('shared_memory')[0], {
    mem_id: seeded[0].mem_id,
    tags: ['finance'],
    author: email,
    confidence: 1,
    reviewed: Boolean,
    acquired_at: Number,
    updated_at: Number,
    operation_id: /^[0-9a-f-]{36}$/,
  })
  t.same(
    of('audit_event').map(({ position, action }) => [position, action]),
    [
      [1, 'create'],
      [2, 'create'],
      [3, 'create'],
      [4, 'delete'],
    ],
  )
  const counts = { role: 1, user: 1, member_key: 3, shared_memory: 2, audit_event: 4 }
  t.match(lines.at(-1), { type: 'end', lines: lines.length - 1, counts })
  t.ok(lines.every(line => line.type === 'end' || line.org_id === org))
  const whole = JSON.stringify(lines)
  for (const secret of [...secrets, 'Ben says', 'It was a mistake', foreign.org]) {
    t.notOk(whole.includes(secret), 'no word and no secret of it')
  }
})

t.test(
  '200: a memory is as sensitive in the export as in the list, by former labels too',
  async t => {
    const { admin, path, org } = await buildOrg(backend, base)
    const { tag_id: tag } = (await admin.post(`${path}/tags`, { label: 'pay' })).body
    await admin.post(`${path}/roles`, { name: 'Books', allowed_tags: ['pay'] })
    await admin.send('PATCH', `${path}/tags/${tag}`, { body: { label: 'wages' } })
    // What is written between the two runs of a rename bears the former label.
    await waitUntil('the first run of the rename', async () => {
      const { rows } = await backend.postgres.query(
        `select 1 from pgboss.job
         where name = 'org-relabel' and data->>'org' = $1 and state = 'completed'`,
        [org],
      )
      return rows.length === 1
    })
    await admin.post(`${path}/memories`, { text: 'The budget is fixed', tags: ['pay'] })
    const [listed] = (await admin.get(`${path}/memories`)).body.items
    const exported = (await linesOf(admin, path)).find(({ type }) => type === 'shared_memory')
    t.same(listed.tags, ['pay'], 'the memory bears the former label')
    t.equal(listed.sensitivity, 'internal')
    t.equal(exported?.['sensitivity'], listed.sensitivity)
  },
)

t.test('200: vectors come where they are asked for', async t => {
  const { admin, path } = await furnished()
  const bare = await linesOf(admin, path)
  t.notOk(bare.some(line => 'vector' in line))
  const memories = (await linesOf(admin, path, '?vectors=true')).filter(
    ({ type }) => type === 'shared_memory',
  )
  for (const { vector } of memories) {
    const { model, values } = vector as { model: string; values: number[] }
    t.equal(model, backend.embedders.defaultModel)
    t.ok(Math.abs(Math.hypot(...values) - 1) < 1e-5)
  }
  t.equal(memories.length, 2)
  const odd = { 'x-embedding-model': 'nobody/nothing' }
  t.equal((await admin.get(`${path}/export?vectors=true`, odd)).status, 400)
})

t.test('200: more users and memories than a page, each once', async t => {
  const { admin, path, org } = await buildOrg(backend, base)
  await insertUsers(backend, org, 1_100)
  await insertStoredMemories(
    backend,
    await vaultOf(org),
    Array.from({ length: 1_300 }, (_, n) => ({ text: `shared ${n}`, at: Math.floor(n / 7) })),
    { vectors: false },
  )
  const lines = await linesOf(admin, path)
  const ids = lines.flatMap(({ mem_id: memory, user_id: user }) => memory ?? user ?? [])
  t.equal(new Set(ids).size, 2_400)
  t.match(lines.at(-1), { counts: { user: 1_100, shared_memory: 1_300 } })
})

async function vaultOf(org: string) {
  return { ...(await sharedVaultOf(backend, org)), revision: 0 }
}

/** An organization whose memories are larger than what any buffer on the way holds. */
async function large(memories: number) {
  const built = await buildOrg(backend, base)
  const scope = await vaultOf(built.org)
  const text = 'x'.repeat(8_000)
  const rows = Array.from({ length: memories }, (_, at) => ({ text, at, tokens: 1 }))
  await insertStoredMemories(backend, scope, rows, { vectors: false })
  const begin = async (signal?: AbortSignal) => {
    const headers = { authorization: `Bearer ${built.key}` }
    const response = await fetch(`${base}${built.path}/export`, {
      headers,
      ...(signal && { signal }),
    })
    const reader = response.body!.getReader()
    await reader.read()
    return reader
  }
  return { ...built, begin }
}

t.test('200: no more is read than the client takes, and reading ends when it leaves', async t => {
  const { begin } = await large(5_000)
  const gone = new AbortController()
  commands.length = 0
  const reader = await begin(gone.signal)
  // Sweeps have cursors of their own, which read other numbers of rows at a time.
  const reads = () => commands.filter(({ command }) => command.batchSize === 500 && command.getMore)
  const closings = () => {
    const own = new Set(reads().map(({ command }) => String(command.getMore)))
    const closed = commands.filter(({ commandName }) => commandName === 'killCursors')
    return closed.filter(({ command }) => own.has(String(command.cursors[0]))).length
  }
  let [before, stands] = [-1, 0]
  // Often enough that the machine has not only stalled.
  await waitUntil('the reading has stopped', async () => {
    await new Promise(resolve => setTimeout(resolve, 100))
    const now = reads().length
    stands = now === before ? stands + 1 : 0
    before = now
    return stands >= 8
  })
  t.ok(before < 9, `${before} of 10 batches`)
  t.equal(closings(), 0)
  gone.abort()
  await reader.closed.catch(() => {})
  await waitUntil('its cursor is closed', () => closings() === 1)
  t.ok(reads().length <= before + 1)
})

t.test('200, then cut: an organization that is removed meanwhile is not a whole file', async t => {
  const { admin, path, begin } = await large(2_500)
  const reader = await begin()
  t.equal((await admin.send('DELETE', path)).status, 200)
  await t.rejects(async () => {
    for (let piece = await reader.read(); !piece.done; piece = await reader.read());
  })
})

t.test('the verify command tells whether a downloaded file is whole', async t => {
  const { admin, path, org, email } = await furnished()
  const dir = t.testdir()
  const write = (name: string, lines: readonly object[]): string => {
    const file = join(dir, name)
    writeFileSync(file, lines.map(line => `${JSON.stringify(line)}\n`).join(''))
    return file
  }
  const verify = (...args: string[]) => {
    // No database is there for it.
    const env = { PATH: process.env.PATH, ...compileCache }
    const ran = spawnSync(process.execPath, ['scripts/verify-audit.ts', ...args], {
      env,
      encoding: 'utf8',
    })
    return { status: ran.status, said: ran.stdout + ran.stderr }
  }
  const lines = await linesOf(admin, path)
  const whole = write('whole.jsonl', lines)
  const ends = join(dir, 'ends.json')
  t.match(verify('--file', whole, '--save', ends), { status: 0, said: /whole +4 events/ })
  t.match(JSON.parse(readFileSync(ends, 'utf8')), [{ org, position: 4 }])

  const account = await newClient(email)
  const all = write('account.jsonl', (await account.get('/v1/account/export')).body)
  const both = verify('--file', all, '--json')
  t.match(both, { status: 0 })
  t.match(JSON.parse(both.said), {
    organizations: [{ org, position: 4, broken: null }],
    accounts: [{ broken: null }],
    fault: null,
  })

  const half = write('half.jsonl', [])
  writeFileSync(half, readFileSync(whole, 'utf8').slice(0, -70))
  t.match(verify('--file', half), { status: 1, said: /not whole: Line \d+ is not one/ })
  t.equal(verify('--file', '/nowhere').status, 2)
  t.equal(verify('--file', whole, '--org', org).status, 2)
})

t.test('a file that was changed, cut or shortened is found out', async t => {
  const { admin, path, org } = await furnished()
  const lines = await linesOf(admin, path)
  const check = (some: readonly object[], anchors: Parameters<typeof verifyExportFile>[1] = []) =>
    verifyExportFile(Readable.from(some.map(line => JSON.stringify(line))), anchors)
  const whole = await check(lines)
  t.match(whole, { fault: null, chains: [{ org, position: 4, broken: null }] })

  const first = lines.findIndex(({ type }) => type === 'audit_event')
  for (const field of [
    'actor',
    'action',
    'mem_id',
    'write_id',
    'created_at_us',
    'event_id',
    'hash',
  ]) {
    const changed = lines.with(first + 1, { ...lines[first + 1]!, [field]: 'deadbeef' })
    const { chains } = await check(changed)
    t.match(chains, [{ position: 1, broken: { position: 2, fault: 'changed' } }], field)
  }
  const without = lines.toSpliced(first + 1, 1)
  t.match((await check(without)).chains, [{ broken: { position: 2, fault: 'missing' } }])
  t.match(await check(lines.slice(0, -1)), { fault: /breaks off/ })
  t.match(await check([...lines, lines[0]!]), { fault: /more after its end/ })
  t.match(await check(lines.filter(({ type }) => type !== 'tag')), { fault: /lines of/ })
  t.match(await check([...lines.slice(0, -1), { type: 'tag' }, lines.at(-1)!]), { fault: /lines/ })
  const exchanged = lines.map(line => (line.type === 'tag' ? { ...line, type: 'role' } : line))
  t.match(await check(exchanged), { fault: /of type (tag|role), not 1/ })

  const { type, lines: all, counts } = lines.at(-1) as Line & { lines: number; counts: object }
  const end = { type, lines: all - 1, counts: { ...counts, audit_event: 3 } }
  const forged = [...lines.slice(0, -2), end]
  t.match(await check(forged), { fault: null, chains: [{ broken: null }] }, 'whole in itself')
  const anchor = { org, position: 4, hash: whole.chains[0]!.hash }
  t.match((await check(forged, [anchor])).chains, [{ broken: { position: 4, fault: 'missing' } }])
  const others = [{ ...anchor, org: crypto.randomUUID() }]
  t.match((await check(forged, others)).chains, [{ broken: null }])
})
