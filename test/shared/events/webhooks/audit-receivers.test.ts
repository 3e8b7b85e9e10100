import t from 'tap'
import { tellAudit } from '#shared/events/webhooks/tell-audit.ts'
import { WebhookSender } from '#shared/events/webhooks/send.ts'
import { deliverPending } from '#test/support/doubles/webhook-subscriber.ts'
import { startOtlpReceiver } from '#test/support/doubles/otlp-receiver.ts'
import { startSyslogReceiver } from '#test/support/doubles/syslog-receiver.ts'
import { buildOrg } from '#test/support/start/admin.ts'
import { allJobsBut, startService } from '#test/support/start/start-service.ts'

const { backend, base } = await startService(t, {
  env: { WEBHOOK_LOOPBACK: 'on', WEBHOOK_PRIVATE_URLS: 'otlp+http://siem.internal:4318' },
  jobs: allJobsBut('audit').filter(job => job !== 'webhook'),
})
const path = '/v1/account/webhooks'
const tell = () => tellAudit(backend, undefined, 0)

/** Subscribes a new account. */
async function subscribe(url: string, events = ['audit.event']) {
  const { admin, org, path: at } = await buildOrg(backend, base)
  const { status, body } = await admin.post(path, { url, events })
  const act = async (...names: string[]) => {
    for (const name of names) await admin.post(`${at}/roles`, { name })
  }
  return { admin, org, at, status, body, act }
}

for (const tls of [false, true])
  t.test(`syslog over ${tls ? 'TLS' : 'TCP'}: each event once, in order, as RFC 5424`, async t => {
    const receiver = await startSyslogReceiver(t, { tls })
    const { act, admin, at, org } = await subscribe(receiver.url)
    await act('A', 'B')
    const text = 'Zoë’s budget is 7 €.'
    await admin.post(`${at}/memories`, { text })
    await tell()
    await tell()
    const messages = () => receiver.received.map(({ body }) => body.message)
    t.same(messages(), ['webhook.created', 'role.created', 'role.created', 'memory.create'])
    const [first] = receiver.received
    t.match(first, { priority: 110, app: 'memory-vault', id: 'audit.event' })
    t.equal(Date.parse(first!.timestamp), first!.body.time)
    t.equal(receiver.received.at(-1)!.body.metadata.log_name, org)

    receiver.conduct = 'refuse'
    await act('C', 'D')
    await tell()
    receiver.conduct = 'reset'
    await tell()
    t.equal(messages().length, 4)
    const [webhook] = (await admin.get(path)).body.webhooks
    t.match(webhook, { failing_since: String, active: true })
    receiver.conduct = 'take'
    await tell()
    t.same(messages().slice(4), ['role.created', 'role.created'])
    t.equal(new Set(receiver.received.map(({ body }) => body.metadata.uid)).size, 6)

    t.equal((await admin.post(`${path}/${webhook.id}/test`, {})).status, 202)
    await deliverPending(backend)
    t.match(receiver.received.at(-1), { id: 'webhook.test', body: { webhook_id: webhook.id } })
  })

t.test('syslog: more than fits a page', async t => {
  const receiver = await startSyslogReceiver(t, { tls: false })
  const { act } = await subscribe(receiver.url)
  await act(...Array.from({ length: 120 }, (_, i) => `Role ${i}`))
  await tell()
  const sequences = receiver.received.map(({ body }) => body.metadata.sequence as number)
  t.equal(sequences.length, 121)
  t.same(
    sequences,
    sequences.toSorted((a, b) => a - b),
  )
})

t.test('OTLP: a log record each, and what is rejected comes again', async t => {
  const receiver = await startOtlpReceiver(t)
  const { act, body, admin } = await subscribe(receiver.origin.replace('http', 'otlp+http'))
  t.equal(body.url, `${receiver.origin.replace('http', 'otlp+http')}/v1/logs`)
  const reject =
    (text: string, status = 200): Parameters<typeof receiver.respondNext>[0] =>
    (_, answer) => {
      answer.head(status, { 'content-type': 'application/json' })
      void answer.write(text)
      answer.end()
    }
  receiver.respondNext(reject('{"partialSuccess":{"rejectedLogRecords":"1"}}'))
  await act('A')
  await tell()
  t.equal(receiver.logs().length, 1)
  receiver.respondNext(reject('{}', 503))
  await tell()
  receiver.respondNext(reject('{"partialSuccess":{"errorMessage":"soon out of service"}}'))
  await tell()
  const [first, second, third, fourth, ...more] = receiver.logs()
  t.same(more, [])
  t.same([second, third], [first, first], 'the same record for every try')
  t.match(first, {
    eventName: 'audit.event',
    severityText: 'INFO',
    resource: { 'service.name': 'memory-vault' },
    attributes: { 'log.record.uid': /^[\da-f-]{36}$/ },
  })
  const [item] = (await admin.get('/v1/account/events')).body.items
  t.equal(fourth!.attributes['log.record.uid'], item.event_id)
  t.match(fourth!.body, {
    class_uid: 3004,
    message: 'role.created',
    actor: { user: { name: item.actor } },
  })
})

t.test('400: what such a receiver cannot be sent', async t => {
  const url = 'syslog+tls://logs.example.com:6514'
  const { admin, status, body } = await subscribe(url)
  t.match({ status, body }, { status: 201, body: { url, events: ['audit.event'] } })
  const events = ['audit.event', 'key.revoked']
  for (const refused of [
    { url, events },
    { url: 'syslog+tls://logs.example.com', events: ['audit.event'] },
    { url: 'syslog+tcp://logs.example.com:514', events: ['audit.event'] },
    { url: 'otlp+http://siem.internal:4319', events: ['audit.event'] },
  ])
    t.equal((await admin.post(path, refused)).status, 400, JSON.stringify(refused))
  const change = (body: object, id: string) => admin.send('PATCH', `${path}/${id}`, { body })
  t.equal((await change({ events }, body.id)).status, 400)
  const { body: other } = await admin.post(path, { url: 'https://example.com/', events })
  t.equal((await change({ url }, other.id)).status, 400)
  t.equal((await change({ url, events: ['audit.event'] }, other.id)).status, 200)
  const listed = { url: 'otlp+http://siem.internal:4318', events: ['audit.event'] }
  t.match(await admin.post(path, listed), {
    status: 201,
    body: { url: `${listed.url}/v1/logs` },
  })
})

t.test('a listed address is sent to wherever its name leads, any other is not', async t => {
  const receiver = await startOtlpReceiver(t)
  const { port } = new URL(receiver.origin)
  const listed = `otlp+http://localhost:${port}/v1/logs`
  const sender = new WebhookSender({ allowLoopback: false, listed: new Set([listed]) })
  t.teardown(() => sender.close())
  const event = { id: 'a', type: 'audit.event', timestamp: '2026-11-29T10:00:00.000Z', data: {} }
  const send = (url: string) => sender.send({ url, secrets: [], events: [event] })
  t.match(await send(listed), { status: 200, error: null })
  t.match(await send(`https://localhost:${port}/`), { error: 'not a public address' })
  t.match(await send(`syslog+tls://localhost:${port}`), { error: 'not a public address' })
})
