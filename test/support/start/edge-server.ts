import type { Test } from 'tap'
import { createApp } from '#api/app.ts'
import { createHttpServer, type ConnectionLimits } from '#api/edge/server.ts'
import { buildKey, createTestClient, patientLimits } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { listen } from '#test/support/start/listen.ts'

/** The API with limits of connections, a client with a new key, and requests as bytes. */
export async function startEdgeServer(t: Test, limits: Partial<ConnectionLimits> = {}) {
  const backend = await createTestBackend(t)
  const key = await buildKey(backend)
  const server = createHttpServer(createApp(backend), { ...patientLimits, ...limits })
  const base = await listen(t, server)

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

  const port = Number(new URL(base).port)
  return { server, port, key, request, client: createTestClient(base, key) }
}
