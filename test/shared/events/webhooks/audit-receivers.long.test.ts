import t from 'tap'
import { tellAudit } from '#shared/events/webhooks/tell-audit.ts'
import { startOtlpReceiver } from '#test/support/doubles/otlp-receiver.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { buildOrg } from '#test/support/start/admin.ts'
import { findCollector, noCollector, startCollector } from '#test/support/start/otel-collector.ts'
import { noRsyslog, prepareRsyslog } from '#test/support/start/rsyslog.ts'
import { allJobsBut, startService } from '#test/support/start/start-service.ts'

const { backend, base } = await startService(t, {
  env: { WEBHOOK_LOOPBACK: 'on' },
  jobs: allJobsBut('audit'),
})
const tell = () => tellAudit(backend, undefined, 0)

/** Subscribes a new account. */
async function subscribe(url: string) {
  const { admin, path } = await buildOrg(backend, base)
  const { status } = await admin.post('/v1/account/webhooks', { url, events: ['audit.event'] })
  t.equal(status, 201)
  return async (...names: string[]) => {
    for (const name of names) await admin.post(`${path}/roles`, { name })
  }
}

type Told = { metadata: { sequence: number; uid: string } }

/** The places in the chain, which must follow each other. */
const isWhole = (told: readonly Told[], count: number): boolean =>
  told.length === count &&
  told.every(
    ({ metadata }, i) => i === 0 || metadata.sequence === told[i - 1]!.metadata.sequence + 1,
  )

for (const tls of [true, false])
  t.test(
    `rsyslog over ${tls ? 'TLS' : 'TCP'} that was away has each event once, in order`,
    { skip: noRsyslog },
    async t => {
      const { url, start, events } = await prepareRsyslog(t, { tls })
      let rsyslog = await start()
      const act = await subscribe(url)
      await act('Zoë', 'B')
      await tell()
      await waitUntil('what was sent is written', () => isWhole(events(), 3))
      await rsyslog.end('SIGTERM')
      await act(...Array.from({ length: 150 }, (_, i) => `Away ${i}`))
      await tell()
      rsyslog = await start()
      await tell()
      await waitUntil('what was missed is written', () => isWhole(events(), 153))
      if (!tls) {
        // The system takes the bytes of a connection that the program never reads.
        rsyslog.pause()
        await act('Paused')
        const told = tell()
        await rsyslog.end('SIGKILL')
        await told
        rsyslog = await start()
      }
      await act('Last')
      await tell()
      await waitUntil('the last is written', () => isWhole(events(), tls ? 154 : 155))
      t.equal(new Set(events().map(({ metadata }) => metadata.uid)).size, events().length)
    },
  )

const collector = findCollector()
const skip = collector === undefined && noCollector

t.test(
  'an OpenTelemetry Collector that was away has each event once, in order',
  { skip },
  async t => {
    const receiver = await startOtlpReceiver(t)
    const options = { queue: false }
    const first = await startCollector(t, collector!, receiver.origin, options)
    const act = await subscribe(first.http.replace('http', 'otlp+http'))
    const events = () => receiver.logs().map(({ body }) => body as Told)
    await act('A', 'B')
    await tell()
    t.ok(isWhole(events(), 3))
    await first.stop()
    await act('C', 'D')
    await tell()
    await startCollector(t, collector!, receiver.origin, { ...options, http: first.http })
    await tell()
    t.ok(isWhole(events(), 5))
    t.match(receiver.logs().at(-1), {
      eventName: 'audit.event',
      resource: { 'service.name': 'memory-vault' },
      body: { class_uid: 3004, message: 'role.created', metadata: { version: '1.5.0' } },
    })
  },
)
