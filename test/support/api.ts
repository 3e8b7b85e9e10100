import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { createApp } from '#api/edge/app.ts'
import { createHttpServer } from '#api/edge/server.ts'
import { createCredentials } from '#scripts/create-credentials.ts'
import type { Backend } from '#shared/backend.ts'
import { jobNames, type JobName } from '#shared/domain/jobs.ts'
import { checkAnswer } from '#test/support/contract.ts'
import { jobHandlers } from '#workers/handlers.ts'

export type TestAnswer = {
  status: number
  headers: Headers
  // oxlint-disable-next-line typescript/no-explicit-any -- what a test reads is what it asserts
  body: any
}

/** Checks every answer against the contract. */
export type TestClient = {
  base: string
  send(method: string, path: string, options?: RequestOptions): Promise<TestAnswer>
  get(path: string, headers?: Record<string, string>): Promise<TestAnswer>
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<TestAnswer>
}

type RequestOptions = {
  headers?: Record<string, string>
  /** A string or bytes are sent unchanged, other values as JSON. */
  body?: unknown
}

/** Starts the application on a free loopback port. @returns a client with the given key. */
export async function startTestApi(t: Test, backend: Backend, key?: string): Promise<TestClient> {
  const server = createHttpServer(createApp(backend))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(
    () =>
      new Promise(resolve => {
        server.close(resolve)
        server.closeAllConnections()
      }),
  )
  return createTestClient(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, key)
}

/** A JSON client of a running API; headers of a call override the key. */
export function createTestClient(base: string, key?: string): TestClient {
  const send: TestClient['send'] = async (method, path, { headers = {}, body } = {}) => {
    const raw = typeof body === 'string' || body instanceof Uint8Array
    const response = await fetch(base + path, {
      method,
      headers: {
        ...(key && { authorization: `Bearer ${key}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: (raw ? body : JSON.stringify(body)) as string }),
    })
    const text = await response.text()
    const type = response.headers.get('content-type') ?? ''
    const lines = type.includes('ndjson') ? parsedLines(text) : null
    const answer = lines ?? (type.includes('json') ? (JSON.parse(text) as unknown) : text)
    if (method !== 'HEAD') {
      for (const part of lines ?? [answer]) checkAnswer(method, path, response.status, part)
    }
    return { status: response.status, headers: response.headers, body: answer }
  }
  return {
    base,
    send,
    get: (path, headers = {}) => send('GET', path, { headers }),
    post: (path, body = {}, headers = {}) => send('POST', path, { headers, body }),
  }
}

const parsedLines = (text: string): unknown[] =>
  text
    .split('\n')
    .filter(line => line !== '')
    .map(line => JSON.parse(line) as unknown)

/** A Memory Key with an empty vault in a new account. */
export async function buildKey({ postgres, config }: Backend, email?: string): Promise<string> {
  const { memoryKey } = await postgres.transaction(tx =>
    createCredentials(tx, config.keyPepper, {
      email: email ?? `${crypto.randomUUID()}@example.com`,
      keyName: 'test',
      keyLifetimeDays: null,
      adminLifetimeDays: null,
      paymentMethod: 'card',
      balance: null,
    }),
  )
  return memoryKey
}

/** Runs job workers in this process; without names, for all queues. */
export async function startJobWorkers(backend: Backend, ...names: JobName[]): Promise<void> {
  for (const name of names.length > 0 ? names : jobNames) await takeJobs(backend, name)
}

const takeJobs = <Name extends JobName>(backend: Backend, name: Name): Promise<void> =>
  backend.queue.work(name, batch => jobHandlers[name](backend, batch))
