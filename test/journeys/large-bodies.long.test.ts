import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { buildKey, createTestClient } from '#test/support/start/api.ts'
import { createTestBackend, createTestConfig } from '#test/support/start/backend.ts'
import { startModelProvider } from '#test/support/doubles/model-provider.ts'
import { createProxyAccount } from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { startWeb } from '#test/support/start/processes.ts'

t.setTimeout(0)

const mebibyte = 1024 * 1024
const atOnce = 24
const heapMebibytes = 700

/** Health checks of others beside large bodies wait this long at most, on a machine that other tests keep busy. */
const waitMaxMs = 120_000

/** A body of 19 MiB from repeated pieces. */
const bodyOf = (start: string, piece: string, end: string): Buffer =>
  Buffer.from(start + piece.repeat(Math.floor((19 * mebibyte) / piece.length)) + end)

/** What is sent, and where: in turn to each of the paths. */
const bodies: [name: string, paths: string[], body: Buffer][] = [
  [
    'objects',
    ['/v1/memory/ingest', '/v1/memory/prepare', '/v1/chat/completions'],
    bodyOf('{"messages":[{}', ',{}', ']}'),
  ],
  ['levels', ['/v1/memory/ingest'], bodyOf('', '[', '')],
  ['numbers', ['/v1/memory/ingest'], bodyOf('[0', ',0', ']')],
]

/** @returns the status, or the code of the error when the server closed a connection it had answered on */
async function post(
  base: string,
  path: string,
  key: string,
  body: Buffer,
): Promise<number | string> {
  const sent = request(base + path, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      'content-length': body.length,
    },
  })
  sent.end(body)
  try {
    const [response] = await once(sent, 'response')
    sent.on('error', () => {})
    response.resume()
    return response.statusCode
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'error'
  }
}

/** Asks for the health again and again until stopped. @returns the times it took, in milliseconds */
function watchHealth(base: string): () => Promise<number[]> {
  const waits: number[] = []
  const state = { stopped: false }
  const watching = (async () => {
    while (!state.stopped) {
      const begun = performance.now()
      const response = await fetch(`${base}/health/live`)
      await response.arrayBuffer()
      waits.push(performance.now() - begun)
      await new Promise(resolve => setTimeout(resolve, 5))
    }
  })()
  return async () => {
    state.stopped = true
    await watching
    return waits
  }
}

t.test(`${atOnce} bodies of 19 MiB at once on a heap of ${heapMebibytes} MiB`, async t => {
  const config = await createTestConfig(t)
  const backend = await createTestBackend(t, { config })
  const key = await buildKey(backend)
  const web = await startWeb(t, config, {
    NODE_OPTIONS: `--max-old-space-size=${heapMebibytes}`,
    RATE_LIMITS: 'off',
  })
  for (const [name, paths, body] of bodies) {
    const stop = watchHealth(web.base)
    const answers = await Promise.all(
      Array.from({ length: atOnce }, (_, n) => post(web.base, paths[n % paths.length]!, key, body)),
    )
    const waits = (await stop()).toSorted((one, other) => one - other)
    const longest = waits.at(-1)!
    t.comment(
      `${name}: health p50 ${waits[Math.floor(waits.length / 2)]!.toFixed(0)} ms, ` +
        `longest ${longest.toFixed(0)} ms of ${waits.length}; answers ${[...new Set(answers)].join(' ')}`,
    )
    const known = new Set<number | string>([400, 'EPIPE', 'ECONNRESET'])
    const unknown = answers.filter(answer => !known.has(answer))
    t.same(unknown, [], name)
    for (const [n, path] of paths.entries()) {
      const own = answers.filter((_, index) => index % paths.length === n)
      t.ok(own.includes(400), `${name}: ${path}`)
    }
    t.ok(longest < waitMaxMs, `${name}: ${longest.toFixed(0)} ms`)
  }
  t.equal((await createTestClient(web.base, key).get('/health')).status, 200, 'it is alive')
})

/** Calls that were refused do not arrive; the others are answered after this time. */
const arrivalMaxMs = 60_000

/** Answers once all of `count` calls have arrived, so that all are held at the same time. */
async function startSlowProvider(t: Test, count: number): Promise<string> {
  let arrived = 0
  const everyone = Promise.withResolvers<void>()
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      if (++arrived === count) everyone.resolve()
      if (arrived === 1) setTimeout(() => everyone.resolve(), arrivalMaxMs).unref()
      void everyone.promise.then(() => {
        const message = { role: 'assistant', content: 'Ada.' }
        response.setHeader('content-type', 'application/json')
        response.end(JSON.stringify({ choices: [{ index: 0, message, finish_reason: 'stop' }] }))
      })
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
}

/** A conversation of 19 MiB, in Cyrillic: texts of it take two bytes for each character. */
const conversation = (length: number): Buffer =>
  Buffer.from(
    JSON.stringify({
      model: 'openai/gpt-4o-mini',
      messages: [
        ...Array.from({ length: Math.floor((19 * mebibyte) / length) }, (_, index) => ({
          role: index % 2 === 0 ? 'user' : 'assistant',
          content: `${index} мою кошку зовут Ада `.repeat(Math.ceil(length / 40)),
        })),
        { role: 'user', content: 'What is the cat called?' },
      ],
    }),
  )

t.test(`${atOnce} model calls of 19 MiB at once on a heap of ${heapMebibytes} MiB`, async t => {
  const provider = await startModelProvider(t)
  const backend = await createTestBackend(t, { env: provider.env })
  const web = await startWeb(t, backend.config, {
    ...provider.env,
    NODE_OPTIONS: `--max-old-space-size=${heapMebibytes}`,
    OPENAI_BASE_URL: await startSlowProvider(t, atOnce),
  })
  const key = await (await createProxyAccount(backend, web.base)).newKey()
  const body = conversation(6_000)
  t.ok(body.length > 18 * mebibyte && body.length < 20 * mebibyte, `${body.length} bytes`)
  const stop = watchHealth(web.base)
  const answers = await Promise.all(
    Array.from({ length: atOnce }, () => post(web.base, '/v1/chat/completions', key, body)),
  )
  const waits = (await stop()).toSorted((one, other) => one - other)
  t.comment(
    `health p50 ${waits[waits.length >> 1]!.toFixed(0)} ms, longest ${waits.at(-1)!.toFixed(0)}`,
  )
  // On a busy machine some may wait too long for their turn.
  const refused = answers.filter(status => status === 503).length
  const served = answers.filter(status => status === 200).length
  t.equal(served + refused, atOnce, [...new Set(answers)].join(' '))
  t.ok(served > 0, 'some are served')
  t.ok(waits.at(-1)! < waitMaxMs)
  t.equal((await createTestClient(web.base, key).get('/health')).status, 200, 'it is alive')
})
