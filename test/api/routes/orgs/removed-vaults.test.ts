import t from 'tap'
import { jobNames } from '#shared/domain/jobs.ts'
import { buildAdmin } from '#test/support/start/admin.ts'
import { createTestClient, startJobWorkers } from '#test/support/start/api.ts'
import { waitUntilIdle, webhookDeliveriesOf } from '#test/support/checks/observe-jobs.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, base } = await startService(t, { env: { WEBHOOK_LOOPBACK: 'on' }, jobs: [] })
const exchange = { messages: [{ role: 'user', content: 'my cat is called Ada' }] }

t.test('what a removed member has done stays hidden from the account', async t => {
  const { key, memoryKey } = await buildAdmin(backend)
  const admin = createTestClient(base, key)
  const owner = createTestClient(base, memoryKey)
  const hook = { url: 'https://example.com/', events: ['operation.finished'] }
  const { id: webhook } = (await owner.post('/v1/account/webhooks', hook)).body
  const path = `/v1/orgs/${(await admin.post('/v1/orgs', { name: 'Acme' })).body.org_id}`
  const member = async (name: string) =>
    (await admin.post(`${path}/keys`, { team_member_id: name })).body.memory_key as string
  const waiting = async (client: ReturnType<typeof createTestClient>) =>
    (await client.post('/v1/memory/ingest', exchange)).body.operation_id as string

  // Nothing of it runs yet: the removals cancel the work of the members.
  await waiting(createTestClient(base, await member('ada@example.com')))
  await waiting(createTestClient(base, await member('bob@example.com')))
  const own = await waiting(owner)
  const { users } = (await admin.get(`${path}/users`)).body
  t.equal((await admin.send('DELETE', `${path}/users/${users[0].user_id}`)).status, 200)
  t.equal((await admin.send('DELETE', path)).status, 200)
  await startJobWorkers(backend, ...jobNames.filter(name => name !== 'webhook'))
  await waitUntilIdle(backend)

  const { items } = (await owner.get('/v1/operations')).body
  t.same(
    items.map(({ operation_id: id }: { operation_id: string }) => id),
    [own],
    'its list',
  )
  const told = await webhookDeliveriesOf(backend, webhook)
  t.same(
    told.map(({ data }) => data.operation_id),
    [own],
    'its webhook',
  )
  const lines = (await owner.get('/v1/account/export')).body as { type: string }[]
  t.equal(lines.filter(({ type }) => type === 'vault').length, 1, 'its export')
})
