import t from 'tap'
import { createTestClient } from '#test/support/start/api.ts'
import { startTeamService } from '#test/support/start/working-team.ts'

const { base, backend, newTeam } = await startTeamService(t, {
  working: false,
  env: { ORG_GATHER_SECONDS: '50' },
})

/** Ingests an exchange of a member. @returns how many seconds it waits for others. */
async function waitOf(key: string, session: string): Promise<number> {
  const { body } = await createTestClient(base, key).post('/v1/memory/ingest', {
    messages: [{ role: 'user', content: 'The launch of Atlas is in May.' }],
    session_id: session,
  })
  const { rows } = await backend.postgres.query<{ seconds: number }>(
    `select round(extract(epoch from start_after - created_on))::int as seconds from pgboss.job
     where name = 'org-extract' and id = $1`,
    [body.operation_id],
  )
  return rows[0]!.seconds
}

t.test('the first turn after a quiet time waits a fifth of the time, later ones all', async t => {
  const team = await newTeam()
  const other = await team.addMember('bob@example.com', ['Everything'])
  t.equal(await waitOf(team.key, 'a'), 10)
  t.equal(await waitOf(team.key, 'a'), 50)
  t.equal(await waitOf(team.key, 'b'), 50)
  t.equal(await waitOf(other, 'a'), 10, 'of another member')
  await backend.postgres.query(
    `update org_turns set created_at = created_at - interval '51 seconds' where author = $1`,
    ['ada@example.com'],
  )
  t.equal(await waitOf(team.key, 'a'), 10, 'quiet again')
})

t.test('the words that are extracted from are those that are stored', async t => {
  const team = await newTeam()
  const content = '<project_notes>\nAtlas launches in May.\n</project_notes>\nContext: see above.'
  const { body } = await createTestClient(base, team.key).post('/v1/memory/ingest', {
    messages: [{ role: 'user', content }],
  })
  const { rows } = await backend.postgres.query<{ messages: object }>(
    `select data->'messages' as messages from pgboss.job where name = 'org-extract' and id = $1`,
    [body.operation_id],
  )
  t.same(rows[0]!.messages, [{ role: 'user', text: content }])
})
