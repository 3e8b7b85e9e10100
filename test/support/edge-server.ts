import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { createApp } from '#api/edge/app.ts'
import { createHttpServer } from '#api/edge/server.ts'
import { buildKey, createTestClient } from '#test/support/api.ts'
import { createTestBackend } from '#test/support/backend.ts'

/** The API with short timeouts, a client with a new key, and requests as bytes. */
export async function startEdgeServer(t: Test) {
  const backend = await createTestBackend(t)
  const key = await buildKey(backend)
  // Short for a fast test, long enough for a busy machine.
  const server = createHttpServer(createApp(backend), {
    headersTimeout: 600,
    requestTimeout: 1_200,
    connectionsCheckingInterval: 50,
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.drain(0))
  const { port } = server.address() as AddressInfo

  /** A request as bytes; null leaves out body and length. */
  function request(
    method: string,
    target: string,
    body: string | null = null,
    headers: Record<string, string> = {},
  ): string {
    const all: Record<string, string> = {
      host: 'localhost',
      authorization: `Bearer ${key}`,
      ...(body !== null && { 'content-length': String(Buffer.byteLength(body)) }),
      ...headers,
    }
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`)
    return `${[`${method} ${target} HTTP/1.1`, ...lines].join('\r\n')}\r\n\r\n${body ?? ''}`
  }

  return { server, port, key, request, client: createTestClient(`http://127.0.0.1:${port}`, key) }
}
