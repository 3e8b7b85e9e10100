import t from 'tap'
import {
  claimProbe,
  clearFault,
  recordFault,
  wakePipeline,
} from '#shared/org/base/pipeline-state.postgres.ts'
import { createTestClient } from '#test/support/start/api.ts'
import { buildTeam } from '#test/support/start/team.ts'
import { startService } from '#test/support/start/start-service.ts'

// No worker runs.
const { backend, base } = await startService(t, { jobs: [] })
const { query } = backend.postgres

t.test('waking a faulty pipeline makes its probe due and wakes a few jobs for it', async t => {
  const [team, other] = [await buildTeam(backend), await buildTeam(backend)]
  for (const { addMember } of [team, other]) {
    const member = createTestClient(base, await addMember('ada@example.com'))
    for (let n = 0; n < 12; n++)
      await member.post('/v1/memory/ingest', { messages: [{ role: 'user', content: `Note ${n}` }] })
  }
  const { org } = team
  const rest = () =>
    query(
      `update pgboss.job set start_after = now() + interval '1 hour' where name = 'org-extract'`,
    )
  const due = async () => {
    const { rows } = await query<{ org: string; n: number }>(
      `select data->>'org' as org, count(*)::int as n from pgboss.job
       where name = 'org-extract' and start_after <= now() group by 1`,
    )
    return rows
  }
  await rest()
  t.ok((await recordFault(query, org, 'no key')) > 0, 'the probe comes later')
  // Seconds later it is due: on a machine that stood still before the next line.
  await query(`update org_pipelines set probe_at = probe_at + interval '1 hour' where org = $1`, [
    org,
  ])
  t.notOk(await claimProbe(query, org), 'the probe is not due')
  await wakePipeline(query, org)
  t.same(await due(), [{ org, n: 10 }])
  t.ok(await claimProbe(query, org))
  t.notOk(await claimProbe(query, org), 'for one alone')

  await clearFault(query, org)
  await rest()
  await wakePipeline(query, org)
  t.same(await due(), [{ org, n: 12 }], 'a pipeline without a fault is woken whole')

  const admin = createTestClient(base, team.adminKey)
  const change = async (body: object) => {
    await rest()
    t.equal((await admin.send('PATCH', `/v1/orgs/${org}`, { body })).status, 200)
    return due()
  }
  t.same(await change({ name: 'Another name' }), [], 'a name is nothing that a turn waits for')
  t.same(await change({ extract_model: 'another' }), [{ org, n: 12 }])
  t.same(await change({ pipeline_paused: true }), [], 'nor does a paused pipeline')
  t.same(await change({ extract_model: 'a third' }), [])
  t.same(await change({ pipeline_paused: false }), [{ org, n: 12 }])
})
