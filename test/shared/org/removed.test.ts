import t from 'tap'
import { mintId } from '#shared/core/ids.ts'
import { storeProviderKey } from '#shared/access/provider-key.ts'
import { missingOrganization } from '#shared/org/base/orgs.postgres.ts'
import { recordWriteIntents } from '#shared/org/memories/shared-writes.postgres.ts'
import { createTestClient, type TestClient } from '#test/support/start/api.ts'
import { buildOrg } from '#test/support/start/admin.ts'
import { startTeamModel } from '#test/support/doubles/team-model.ts'
import { jobHandlers } from '#workers/handlers.ts'
import { startService } from '#test/support/start/start-service.ts'

// Jobs are run by hand: each sees its organization go at the worst moment.
const model = await startTeamModel(t)
const { backend, base } = await startService(t, { env: model.env, jobs: [] })
const { query } = backend.postgres

const failed: string[] = []
const warn = (_: object, event: string) => void failed.push(event)
const heard = { ...backend, log: Object.assign(Object.create(backend.log), { warn, error: warn }) }

async function built(): Promise<{
  admin: TestClient
  path: string
  member: TestClient
  user: string
}> {
  const { admin, path } = await buildOrg(backend, base)
  const { body: org } = await admin.get(path)
  const { rows } = await query<{ account: string }>('select account from orgs where id = $1', [
    org.org_id,
  ])
  const { seal } = backend
  await storeProviderKey(
    { query, seal },
    { account: rows[0]!.account, actor: 'test' },
    'openai',
    'sk-0123456789abcdef',
  )
  await admin.send('PATCH', path, { body: { processor_provider: 'openai' } })
  const { body: key } = await admin.post(`${path}/keys`, { team_member_id: mintId() })
  const { users } = (await admin.get(`${path}/users`)).body
  return { admin, path, member: createTestClient(base, key.key_id), user: users[0].user_id }
}

type Pass = 'org-extract' | 'org-tag' | 'org-reconcile'

/** Takes the one job of a queue that a turn has, as a worker would. */
async function run(pass: Pass, turn: string): Promise<unknown> {
  const { rows } = await query<{ data: never }>(
    'select data from pgboss.job where name = $1 and id = $2',
    [pass, turn],
  )
  const job = { id: turn, data: rows[0]!.data, again: false, last: false }
  const { signal } = new AbortController()
  const [verdict] = await jobHandlers[pass](heard, [{ ...job, signal }] as never)
  return verdict
}

const passes: [Pass, 'extract' | 'tag' | 'reconcile'][] = [
  ['org-extract', 'extract'],
  ['org-tag', 'tag'],
  ['org-reconcile', 'reconcile'],
]

for (const what of ['organization', 'member']) {
  t.test(`a pass that its ${what} is removed under is done, and leaves nothing`, async t => {
    for (const [pass, asked] of passes) {
      const { admin, path, member, user } = await built()
      await admin.post(`${path}/tags`, { label: 'launch' })
      await admin.post(`${path}/memories`, { text: 'The launch day of the rocket: May' })
      const { body } = await member.post('/v1/memory/ingest', {
        messages: [{ role: 'user', content: 'Fact: The launch day of the rocket: June' }],
      })
      const turn = body.operation_id
      for (const [earlier] of passes.slice(
        0,
        passes.findIndex(([name]) => name === pass),
      )) {
        t.strictSame(await run(earlier, turn), { id: turn, status: 'done' }, earlier)
      }
      let removed = 0
      model.scriptAnswers(asked, async () => {
        const gone = what === 'member' ? `${path}/users/${user}` : path
        removed = (await admin.send('DELETE', gone)).status
        return { status: 400 }
      })
      failed.length = 0
      t.strictSame(await run(pass, turn), { id: turn, status: 'done' }, pass)
      t.equal(removed, 200, 'it was removed while the model was asked')
      t.strictSame(failed, [], 'nobody is told of a failure')
      t.equal((await query('select from org_turns where id = $1', [turn])).rowCount, 0)
    }
  })
}

t.test('404: seeding an organization that is removed meanwhile leaves others alone', async t => {
  for (let round = 0; round < 4; round++) {
    const { admin, path } = await built()
    const { body: seeded } = await admin.post(`${path}/memories`, { text: 'The floor is three' })
    const answers = await Promise.all([
      ...Array.from({ length: 4 }, (_, n) =>
        admin.post(`${path}/memories`, {
          items: [{ text: `Floor ${n}` }, { text: `Roof ${n}` }],
        }),
      ),
      admin.send('PATCH', `${path}/memories/${seeded.mem_id}`, { body: { tags: ['x'] } }),
      admin.send('DELETE', path),
    ])
    t.equal(answers.at(-1)!.status, 200)
    for (const { status, body } of answers.slice(0, -1))
      t.ok(status === 200 || status === 201 || status === 404, `${status} ${body.error ?? ''}`)
    t.equal((await admin.get(path)).status, 404)
  }
})

t.test('a change to an organization that went before it was written down is refused', async t => {
  const snapshot = { text: 'x', tags: [], confidence: 1, author: 'x', reviewed: true, tokens: 1 }
  const place = { org: mintId(), vault: mintId(), epoch: 1, memory: mintId() }
  const what = { kind: 'add', actor: 'x', actions: ['create'] } as const
  const after = { ...snapshot, acquiredAt: 1 }
  const written = recordWriteIntents(query, [
    { id: mintId(), ...place, ...what, before: null, after },
  ])
  await t.rejects(written, missingOrganization())
})
