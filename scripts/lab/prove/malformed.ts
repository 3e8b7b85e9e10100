import { once } from 'node:events'
import { connect } from 'node:net'
import { brokenBodies } from '#scripts/lab/prove/malformed/hostile-values.ts'
import { malformedRequest } from '#scripts/lab/prove/malformed/malformed-request.ts'
import { TenantPool } from '#scripts/lab/prove/malformed/tenant-pool.ts'
import { planOf, routes, sendersOf } from '#scripts/lab/prove/requests/requests.ts'
import {
  createLimit,
  Faults,
  pickOne,
  runLoops,
  type SectionContext,
  type SectionResult,
} from '#scripts/lab/prove/section.ts'

const clients = 8
const hangMs = 30_000
const rawShare = 0.1
/** What was accepted has to end, too. */
const settleMs = 120_000

/**
 * Nearly valid, random and broken requests over every route, with keys that open it, and over raw sockets: no 5xx, no
 * hang.
 */
export async function proveMalformed(context: SectionContext): Promise<SectionResult> {
  const { cluster, provider, random } = context
  const faults = new Faults()
  const pool = new TenantPool(context)
  // The first tenants are made before memory is measured.
  const owner = await pool.pick('owner')
  const before = await cluster.resources()
  const statuses = new Map<number, number>()
  let requests = 0
  let sockets = 0
  const isOver = createLimit(context, () => requests + sockets)
  await runLoops(clients, isOver, async () => {
    if (random() >= rawShare) return await sendMalformed()
    sockets++
    if (!(await sendRawBytes(pickOne(cluster.ports, random), hangMs, random)))
      faults.add('a raw connection hung')
  })
  const open = await cluster.settle(settleMs).then(
    () => 0,
    () => cluster.countOpenOperations(),
  )
  const after = await cluster.resources()
  return {
    figures: [
      { name: 'requests', value: requests },
      { name: 'raw connections', value: sockets },
      ...[...statuses]
        .toSorted(([left], [right]) => left - right)
        .map(([status, value]) => ({ name: `answers ${status}`, value })),
      { name: 'answers 5xx, broken or missing', value: faults.count, most: 0 },
      { name: 'accepted operations that did not end', value: open, most: 0 },
      { name: 'memory of the processes before', value: before.memoryMiB, unit: 'MiB' },
      { name: 'memory of the processes after', value: after.memoryMiB, unit: 'MiB' },
    ],
    faults: faults.first,
  }

  async function sendMalformed(): Promise<void> {
    const endpoint = pickOne(routes, random)
    const plan = planOf(endpoint)
    if (plan.isRare && random() < 0.9) return
    const tenant = await pool.pick(pickOne(sendersOf(endpoint), random))
    const { path, options } = malformedRequest(endpoint, plan, tenant, {
      random,
      origin: provider.origin,
    })
    if (plan.makes && pool.isFull(plan.makes)) options.body = pickOne(brokenBodies, random)
    const key = plan.withOwnKey ? await mintKey() : tenant.key
    const startedAt = performance.now()
    const signal = AbortSignal.timeout(hangMs)
    const port = pickOne(cluster.ports, random)
    const { status, text } = await cluster.send(port, key, path, { ...options, signal })
    requests++
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
    if (status >= 200 && status < 300) {
      tenant.addNamed(plan, text)
      if (plan.makes) pool.noteMade(plan.makes)
    }
    // One of its requests has revoked it.
    if (status === 401 && !options.headers?.authorization) pool.remove(tenant)
    const isSlow = performance.now() - startedAt > hangMs
    if (status < 500 && !isSlow && status !== 0) return
    faults.add(
      `${endpoint.method} ${path}: ${isSlow ? 'no answer' : status} ${text.slice(0, 100)} to ${JSON.stringify(options).slice(0, 250)}`,
    )
  }

  /** A key that its request may end. */
  async function mintKey(): Promise<string> {
    const port = pickOne(cluster.ports, random)
    const { status, text } = await cluster.send(port, owner.key, '/v1/keys', {
      body: { name: 'malformed' },
    })
    return status === 201 ? (JSON.parse(text) as { key: string }).key : ''
  }
}

/** No request, or half of one. */
const pieces: readonly string[] = [
  'GET / HTTP/1.1\r\n\r\n',
  'POST /v1/memory/ingest HTTP/1.1\r\nhost: a\r\ncontent-length: -1\r\n\r\n',
  'POST /v1/memory/ingest HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n',
  '\u0016\u0003\u0001\u0002\u0000',
  'GET /\u0000 HTTP/1.1\r\nhost: a\r\n\r\n',
  `GET /${'a'.repeat(70_000)} HTTP/1.1\r\nhost: a\r\n\r\n`,
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'GET /health HTTP/1.1\r\nhost: a\r\nhost: b\r\nconnection: close\r\n\r\n',
  '\r\n\r\n\r\n',
]

/** Writes bytes that are no or half a request. @returns whether the server closed the connection within `hangMs` */
async function sendRawBytes(port: number, hangMs: number, random: () => number): Promise<boolean> {
  const socket = connect({ port, host: '127.0.0.1' })
  socket.on('error', () => {})
  socket.resume()
  socket.end(Buffer.from(pickOne(pieces, random), 'latin1'))
  const timer = setTimeout(() => socket.destroy(new Error('hang')), hangMs)
  const [hadError] = (await once(socket, 'close')) as [boolean]
  clearTimeout(timer)
  return !(hadError && socket.errored?.message === 'hang')
}
