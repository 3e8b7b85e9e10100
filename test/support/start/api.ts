import type { Test } from 'tap'
import { createApp } from '#api/app.ts'
import { createHttpServer, type ConnectionLimits } from '#api/edge/server.ts'
import { createCredentials } from '#scripts/create-credentials.ts'
import type { Backend } from '#shared/backend.ts'
import { jobNames, type JobName } from '#shared/domain/jobs.ts'
import { checkAnswer } from '#test/support/checks/contract.ts'
import { recordAnswer, recordServer } from '#test/support/checks/promises.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { jobHandlers } from '#workers/handlers.ts'
import { listen } from '#test/support/start/listen.ts'

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

/** A machine that is busy with other tests can stand still for longer than peers of the service may. */
export const patientLimits: Partial<ConnectionLimits> = {
  headersTimeout: 60_000,
  bodyTimeoutMs: 60_000,
  lingerMs: 60_000,
  idleTimeoutMs: 60_000,
}

/** Starts the application on a free loopback port. @returns a client with the given key. */
export async function startTestApi(t: Test, backend: Backend, key?: string): Promise<TestClient> {
  const server = createHttpServer(createApp(backend), patientLimits)
  recordServer(server)
  return createTestClient(await listen(t, server), key)
}

/** The service waits for the work of a request for 25 s, and answers 202 then. */
const waitedMs = 24_000

/**
 * A JSON client of a running API; headers of a call override the key. Work that was not done within the 25 s of
 * the service is waited for, as a client does that follows `Location`: a busy machine needs longer.
 */
export function createTestClient(base: string, key?: string): TestClient {
  const send: TestClient['send'] = async (method, path, options = {}) => {
    const begun = performance.now()
    const answer = await sendOnce(method, path, options)
    if (!hasWaited(path, options, answer) || performance.now() - begun < waitedMs) return answer
    const operation = async () => {
      const at = `/v1/operations/${answer.body.operation_id}`
      return (await sendOnce('GET', at, { headers: options.headers ?? {} })).body
    }
    const ended = async () => ['done', 'failed', 'cancelled'].includes((await operation()).state)
    await waitUntil('late work has ended', ended)
    const { outcome } = await operation()
    if (!outcome) return answer
    return { ...answer, status: outcome.status, body: { ...answer.body, ...outcome.body } }
  }
  const sendOnce: TestClient['send'] = async (method, path, { headers = {}, body } = {}) => {
    const raw = typeof body === 'string' || body instanceof Uint8Array
    const sent = (raw ? body : JSON.stringify(body)) as string | undefined
    const named = {
      ...(key && { authorization: `Bearer ${key}` }),
      ...(sent !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    }
    const response = await fetch(base + path, {
      method,
      headers: named,
      ...(sent !== undefined && { body: sent }),
    })
    const text = await response.text()
    recordAnswer(base, {
      method,
      target: path,
      headers: Object.keys(named).map(name => name.toLowerCase()),
      body: String(sent),
      status: response.status,
      sends: [...response.headers.keys()],
      answer: text,
    })
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

/** Whether an answer is the 202 of a request that wanted the outcome of its work. */
const hasWaited = (
  path: string,
  { headers = {} }: RequestOptions,
  { status, body }: TestAnswer,
): boolean =>
  status === 202 &&
  headers.prefer === undefined &&
  (body.status === 'processing' || (body.queued === true && path.includes('wait=true')))

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
