import t from 'tap'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  isAllowedAddress,
  publicLookup,
  requirePublicUrl,
  requireReceiverUrl,
  webhookPolicy,
} from '#shared/events/webhooks/ssrf-guard.ts'
import { WebhookSender } from '#shared/events/webhooks/send.ts'

const nowhere = { allowLoopback: false }
const event = { id: 'a', type: 'webhook.test', timestamp: '2026-11-29T10:00:00.000Z', data: {} }
const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

const unreachable = `
  0.0.0.0 10.1.2.3 100.64.0.1 127.0.0.1 127.9.9.9 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.192
  192.168.1.1 198.18.0.1 224.0.0.1 240.0.0.1 255.255.255.255 example.com
  :: ::1 ::ffff:127.0.0.1 ::ffff:8.8.8.8 64:ff9b::a9fe:a9fe fc00::1 fd00:ec2::254 fe80::1 ff02::1
  2001:db8::1 2002:7f00:1:: 2001:0:7f00:1::`

t.test('what is not public is not reached, in any notation', async t => {
  // With an address that is empty.
  for (const address of unreachable.split(/\s+/))
    t.equal(isAllowedAddress(address, nowhere), false, address)
  for (const address of ['8.8.8.8', '172.32.0.1', '192.169.0.1', '2606:4700::1111', '2a00::1'])
    t.equal(isAllowedAddress(address, nowhere), true, address)
  t.equal(isAllowedAddress('127.0.0.1', { allowLoopback: true }), true)
  t.equal(isAllowedAddress('::1', { allowLoopback: true }), true)
  t.equal(isAllowedAddress('10.0.0.1', { allowLoopback: true }), false, 'no more than this machine')
})

t.test('invalid: addresses that no webhook may have', async t => {
  for (const [url, error] of [
    ['http://example.com/', /https/],
    ['ftp://example.com/', /https/],
    ['file:///etc/passwd', /https/],
    ['nonsense', /no URL/],
    ['https://user:pass@example.com/', /credentials/],
    ['https://127.0.0.1/', /private/],
    ['https://2130706433/', /private/],
    ['https://0x7f.1/', /private/],
    ['https://0177.0.0.1/', /private/],
    ['https://127。0。0。1/', /private/],
    ['https://[::1]/', /private/],
    ['https://[::ffff:169.254.169.254]/', /private/],
    ['https://169.254.169.254/latest/meta-data/', /private/],
    ['http://localhost:3000/', /https/],
    [`https://example.com/${'a'.repeat(2_100)}`, /2048|characters/],
  ] as const)
    t.throws(() => requirePublicUrl(url, nowhere), { reason: 'invalid', message: error }, url)
  t.equal(
    requirePublicUrl('https://Example.com:8443/a?b=c#d', nowhere).href,
    'https://example.com:8443/a?b=c',
  )
  t.equal(requirePublicUrl('http://localhost:1/', { allowLoopback: true }).port, '1')
})

t.test(
  'addresses of syslog and OTLP follow the same rules, but for those that the operator has listed',
  async t => {
    const href = (url: string, policy = nowhere) => requireReceiverUrl(url, policy).url.href
    for (const [url, normal] of [
      ['syslog+tls://Logs.example.com:443', 'syslog+tls://logs.example.com:443'],
      ['SYSLOG+TLS://logs.example.com:6514/', 'syslog+tls://logs.example.com:6514'],
      ['otlp+https://example.com', 'otlp+https://example.com/v1/logs'],
      ['otlp+https://example.com:4318/a?key=b', 'otlp+https://example.com:4318/a?key=b'],
      ['https://example.com', 'https://example.com/'],
    ] as const)
      t.equal(href(url), normal)
    for (const url of [
      'syslog+tls://logs.example.com',
      'syslog+tls://logs.example.com:6514/path',
      'syslog+tcp://logs.example.com:514',
      'syslog+udp://logs.example.com:514',
      'syslog+tls://10.0.0.1:6514',
      'syslog+tls://0x7f.1:6514',
      'syslog+tls://[::1]:6514',
      'otlp+http://example.com',
      'otlp+https://169.254.169.254',
      'otlp+https://a:b@example.com',
    ])
      t.throws(() => href(url), { message: /^url / }, url)
    const listed = webhookPolicy({
      allowLoopbackWebhooks: false,
      listedWebhooks: [
        'syslog+tcp://10.0.0.1:514',
        'otlp+http://Collector:4318',
        'http://siem/hook',
      ],
    })
    t.equal(href('syslog+tcp://10.0.0.1:514/', listed), 'syslog+tcp://10.0.0.1:514')
    t.equal(
      href('otlp+http://collector:4318/v1/logs', listed),
      'otlp+http://collector:4318/v1/logs',
    )
    t.equal(href('http://siem/hook', listed), 'http://siem/hook')
    for (const url of ['syslog+tcp://10.0.0.1:515', 'otlp+http://collector:4318/a', 'http://siem/'])
      t.throws(() => href(url, listed), { message: /^url / }, url)
  },
)

t.test('a name counts by what it resolves to, when it is connected to', async t => {
  const found = await new Promise<NodeJS.ErrnoException | null>(done =>
    publicLookup(nowhere)('localhost', { all: true }, error => done(error)),
  )
  t.match(found, { code: 'EPRIVATE' })
  const sender = new WebhookSender(nowhere)
  t.teardown(() => sender.close())
  const message = { secrets: [secret], events: [event] as const }
  t.match(await sender.send({ ...message, url: 'https://localhost/' }), {
    status: null,
    error: 'not a public address',
  })
  t.match(await sender.send({ ...message, url: 'https://127.0.0.1/' }), {
    error: 'not a public address',
  })
  t.match(await sender.send({ ...message, url: 'https://nobody.invalid/' }), {
    error: 'name not found',
  })
})

t.test('an answer that does not come, redirects or floods', async t => {
  let asked = 0
  let followed = 0
  const server = createServer((request, response) => {
    asked++
    if (request.url === '/redirect') {
      response.writeHead(302, { location: '/elsewhere' }).end()
    } else if (request.url === '/flood') {
      const flood = (): void => {
        while (response.write('x'.repeat(64 * 1024)));
        response.once('drain', flood)
      }
      flood()
    } else if (request.url === '/elsewhere') {
      followed++
      response.end()
    }
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const patient = { connectMs: 60_000, responseMs: 60_000, totalMs: 120_000 }
  const sender = new WebhookSender({ allowLoopback: true }, patient)
  const impatient = new WebhookSender({ allowLoopback: true }, { ...patient, responseMs: 1_000 })
  t.teardown(async () => {
    await Promise.all([sender.close(), impatient.close()])
    server.closeAllConnections()
    server.close()
  })
  const send = (url: string, by = sender) => by.send({ secrets: [secret], events: [event], url })
  t.match(await send(`${base}/redirect`), { status: 302, error: 'refused' })
  t.equal(followed, 0)
  const silent = await send(`${base}/silence`, impatient)
  t.match(silent, { status: null, error: 'timed out' })
  const flooded = await send(`${base}/flood`)
  t.not(flooded.error, 'timed out', 'no more is read than is worth it')
  t.equal(asked, 3)
  t.match(await send('http://127.0.0.1:1/'), { status: null, error: 'connection refused' })
})
