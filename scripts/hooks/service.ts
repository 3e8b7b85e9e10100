import type { Connection } from './files.ts'

/** An answer of the service, or why there is none. */
export type ServiceAnswer = { status: number; body: Record<string, unknown> }

/** Calls the service. @throws Error when it cannot be reached or does not answer in time. */
export async function callService(
  { base_url, key }: Connection,
  call: {
    method: 'GET' | 'POST'
    path: string
    body?: unknown
    idempotencyKey?: string
    timeoutMs: number
  },
): Promise<ServiceAnswer> {
  const { method, path, body, idempotencyKey, timeoutMs } = call
  // The first fetch loads Node's client, which takes a busy machine longer than the service takes to answer.
  await fetch('data:,')
  const response = await fetch(`${base_url}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal: signalAfter(timeoutMs),
  })
  const text = await response.text()
  return { status: response.status, body: parse(text) }
}

/** Aborts after this time, but reads first what has arrived meanwhile: on a busy machine this process may be the late one. */
function signalAfter(ms: number): AbortSignal {
  const end = new AbortController()
  const abort = () => end.abort(new DOMException('no answer in time', 'TimeoutError'))
  setTimeout(() => setTimeout(abort, 50).unref(), ms).unref()
  return end.signal
}

/** Asks the service. @throws Error, also for a refusal, with the reason */
export async function askService(
  connection: Connection,
  call: Parameters<typeof callService>[1],
): Promise<Record<string, unknown>> {
  const answer = await callService(connection, call).catch((error: unknown) => {
    const isLate = (error as Error).name === 'TimeoutError'
    throw isLate ? new Error(`the service gave no answer in ${call.timeoutMs} ms`) : error
  })
  if (answer.status >= 300) throw new Error(describeRefusal(answer))
  return answer.body
}

function parse(text: string): Record<string, unknown> {
  try {
    const value = JSON.parse(text) as unknown
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

/** A sentence on an answer that is a refusal. */
export function describeRefusal({ status, body: { error, hint } }: ServiceAnswer): string {
  if (typeof error !== 'string') return `the service answered ${status}`
  return typeof hint === 'string' ? `${error}. ${hint}` : error
}

/** The reason of a failed `fetch` stands in its cause. */
export function describeFailure(error: unknown): string {
  const { message, cause } = error as Error
  const { message: reason, code } = (cause ?? {}) as { message?: string; code?: string }
  return reason || code || message
}
