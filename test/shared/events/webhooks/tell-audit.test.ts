import t from 'tap'
import { Webhook } from 'standardwebhooks'
import { accountActions } from '#shared/events/account-events.postgres.ts'
import { tellAudit, toOcsf } from '#shared/events/webhooks/tell-audit.ts'
import { ocsfFaults } from '#test/support/checks/ocsf.ts'
import { buildOrg } from '#test/support/start/admin.ts'
import { startWebhookReceiver } from '#test/support/doubles/webhook-receiver.ts'
import { allJobsBut, startService } from '#test/support/start/start-service.ts'

const { backend, base } = await startService(t, {
  env: { WEBHOOK_LOOPBACK: 'on' },
  jobs: allJobsBut('audit'),
})
const { admin, org, path } = await buildOrg(backend, base)
const { body: before } = await admin.post(`${path}/roles`, { name: 'Before' })
const receiver = await startWebhookReceiver(t)
const subscribe = async (url = receiver.url) =>
  (await admin.post('/v1/account/webhooks', { url, events: ['audit.event'] })).body
const sink = await subscribe()
const tell = () => tellAudit(backend, undefined, 0)
const toldOf = ({ received }: typeof receiver) =>
  received.map(({ body }) => [body.data.metadata.sequence, body.data.message])
const newest = async () => (await admin.get('/v1/account/events')).body.items[0]

t.test('each event once, in the order of its chain, from when the webhook was made', async t => {
  await tell()
  const [first] = receiver.received
  t.match(first!.body, {
    type: 'audit.event',
    data: { message: 'webhook.created', class_uid: 3004, activity_id: 1, type_uid: 300401 },
  })
  t.notMatch(JSON.stringify(receiver.received), before.role_id)
  const signed = new Webhook(sink.secret).verify(first!.text, first!.headers)
  t.same(signed, first!.body)
  t.equal(first!.headers['webhook-id'], first!.body.data.metadata.uid)

  const { body: user } = await admin.post(`${path}/users`, { email: 'ada@example.com' })
  for (const name of ['A', 'B', 'C']) await admin.post(`${path}/roles`, { name })
  await admin.send('DELETE', `${path}/users/${user.user_id}`)
  await tell()
  await tell()
  t.same(
    toldOf(receiver).map(([, message]) => message),
    [
      'webhook.created',
      'user.created',
      'role.created',
      'role.created',
      'role.created',
      'user.deleted',
    ],
  )
  const positions = toldOf(receiver).map(([position]) => position as number)
  t.same(
    positions,
    positions.toSorted((a, b) => a - b),
  )
  t.equal(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size, 6)
  const told = receiver.received[1]!.body.data
  t.match(told, {
    class_uid: 3001,
    user: { uid: user.user_id },
    actor: { user: { name: (await newest()).actor } },
    unmapped: { organization: org, hash: /^[\da-f]{64}$/ },
  })
})

t.test('a receiver that is away gets what it missed, from where it stopped', async t => {
  const had = receiver.received.length
  receiver.answer(503)
  for (const name of ['D', 'E']) await admin.post(`${path}/roles`, { name })
  await tell()
  t.equal(receiver.received.length, had + 1, 'the next waits until the first is taken')
  const { body: shown } = await admin.get(`/v1/account/webhooks/${sink.id}`)
  t.match(shown, { active: true, failing_since: String })
  await tell()
  receiver.answer(204)
  await tell()
  const ids = receiver.received.slice(had).map(({ headers }) => headers['webhook-id'])
  t.equal(ids.length, 4)
  t.equal(new Set(ids.slice(0, 3)).size, 1, 'the same id for every try')
  t.match((await admin.get(`/v1/account/webhooks/${sink.id}`)).body, { failing_since: null })
})

t.test(
  'what an organization shares is told in its own chain; of another account nothing',
  async t => {
    const foreign = await buildOrg(backend, base)
    await foreign.admin.post(`${foreign.path}/memories`, { text: 'The foreign budget is nine.' })
    const had = receiver.received.length
    const text = 'The budget is seven.'
    const { body: memory } = await admin.post(`${path}/memories`, { text })
    await tell()
    const told = receiver.received.slice(had).map(({ body }) => body.data)
    t.match(told, [
      {
        message: 'memory.create',
        metadata: { log_name: org, sequence: 1 },
        entity: { uid: memory.mem_id, type: 'memory' },
      },
    ])
    t.equal(told.length, 1)
    t.notMatch(JSON.stringify(receiver.received), text, 'no words of what is remembered')
  },
)

t.test(
  'a second webhook has a place of its own; one that is switched off is told nothing',
  async t => {
    const second = await startWebhookReceiver(t)
    const { id } = await subscribe(second.url)
    await tell()
    t.equal(toldOf(second).at(-1)?.[1], 'webhook.created')
    await admin.send('PATCH', `/v1/account/webhooks/${id}`, { body: { active: false } })
    const had = second.received.length
    await admin.post(`${path}/roles`, { name: 'F' })
    await tell()
    t.equal(second.received.length, had)
    await admin.send('PATCH', `/v1/account/webhooks/${id}`, { body: { active: true } })
    await tell()
    t.ok(second.received.length > had, 'and what it missed once it is on again')
  },
)

t.test('every action is a valid event of OCSF', async t => {
  const event = { chain: org, position: 1, id: org, subject: 'x', actor: 'y', at: 0, hash: '' }
  const change = JSON.stringify([{ a: 1 }, { a: 2 }, org])
  const memoryActions = ['create', 'update', 'retag', 'delete'].map(verb => `memory.${verb}`)
  for (const action of [...accountActions, ...memoryActions])
    for (const changed of [null, change])
      t.same(ocsfFaults(toOcsf({ ...event, action, change: changed }, org)), [], action)
  t.match(toOcsf({ ...event, action: 'user.suspended', change }, org), {
    class_uid: 3001,
    activity_id: 5,
    user: { org: { uid: org } },
    unmapped: { before: { a: 1 }, after: { a: 2 } },
  })
  t.match(toOcsf({ ...event, action: 'user.changed', change: null }, org), {
    activity_id: 99,
    activity_name: 'changed',
  })
  t.match(toOcsf({ ...event, action: 'key.revealed', change: null }, org), { type_uid: 300402 })
})
