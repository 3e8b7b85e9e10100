import { VaultError, vaultClient, type Route, type VaultClient } from './client.ts'
import { operations, type Methods } from './generated/operations.ts'
import type { MethodOptions } from './method.ts'

export * from './client.ts'

/** What the transport has to know of an endpoint. */
export type Operation = {
  route: string
  /** Fields that go into the query. */
  query?: readonly string[]
  /** Fields that go into headers, with the header of each. */
  headers?: Record<string, string>
  /** How the remaining fields are sent; nothing: there are none. */
  body?: 'json' | 'lines' | 'form' | 'bytes'
  /** Whether the answer is JSON lines. */
  streams?: true
  takesKey?: true
  /** Whether a POST changes and stores nothing, so that it may be sent again. */
  reads?: true
  /** Whether it changes something, so that a key is sent even if the caller names none. */
  writes?: true
  /** Values of fields that the caller left out. */
  defaults?: Record<string, unknown>
}

export type VaultOptions = {
  fetch?: typeof fetch
  /** Your id of the user whose vault each call opens, with the key that was made with the account. */
  user?: string
  /** Seconds that the service may take for an answer. Default 600, as the SDKs of model providers wait. */
  timeout?: number
  /** How many more times a call that may work later is sent. Default 4. */
  retries?: number
}

/** A method for every endpoint of the contract, and `call` and `lines` for its routes by name. */
export type Vault = Methods &
  VaultClient & {
    /** A client of the vault of one of your users. */
    forUser(user: string): Vault
  }

/**
 * A client of a Memory Vault. Its methods throw VaultError for every refusal; where no answer came they throw what
 * `fetch` throws. Calls that may work later and do nothing twice are sent again.
 *
 * @param baseUrl such as `https://memory.example.com`
 * @param key a Memory Key, or an admin credential for the endpoints of organizations
 */
export function createVault(baseUrl: string, key: string, options: VaultOptions = {}): Vault {
  const client = vaultClient(baseUrl, key, options)
  const run = (
    operation: Operation,
    fields: Fields = {},
    { signal, idempotencyKey }: MethodOptions = {},
  ) => {
    const request = buildRequest(operation, { ...operation.defaults, ...fields }, idempotencyKey)
    const route = operation.route as Route
    if (operation.streams) return client.lines(route as never, request, signal && { signal })
    return withRetries(operation, options, signal, signal =>
      client.call(route, request as never, { signal }),
    )
  }
  const methods = Object.entries<Operation>(operations).map(([name, operation]) => [
    name,
    (fields?: Fields, options?: MethodOptions) => run(operation, fields, options),
  ])
  return {
    ...(Object.fromEntries(methods) as Methods),
    ...client,
    forUser: user => createVault(baseUrl, key, { ...options, user }),
  }
}

type Fields = Record<string, unknown>
type Request = { params: Fields; query: Fields; headers: Fields; body?: unknown }

/** Puts each field where the contract has it. */
function buildRequest(
  { route, query = [], headers = {}, body, takesKey, writes }: Operation,
  fields: Fields,
  idempotencyKey: string | undefined,
): Request {
  const request: Request = { params: {}, query: {}, headers: {} }
  const rest: Fields = {}
  for (const [name, value] of Object.entries(fields)) {
    if (route.includes(`/:${name}`)) request.params[name] = value
    else if (query.includes(name)) request.query[name] = value
    else if (headers[name] !== undefined) request.headers[headers[name]] = value
    else rest[name] = value
  }
  if (takesKey && (idempotencyKey ?? writes)) {
    request.headers['idempotency-key'] = idempotencyKey ?? crypto.randomUUID()
  }
  if (body === 'json') request.body = rest
  if (body === 'lines') request.body = toLines(rest.lines as string | Iterable<unknown>)
  if (body === 'form') request.body = toForm(rest)
  if (body === 'bytes') {
    request.body = rest.file
    request.headers['content-type'] = 'application/octet-stream'
  }
  return request
}

const toLines = (lines: string | Iterable<unknown>): string =>
  typeof lines === 'string'
    ? lines
    : Array.from(lines, line => `${JSON.stringify(line)}\n`).join('')

function toForm(fields: Fields): FormData {
  const form = new FormData()
  for (const [name, value] of Object.entries(fields)) {
    if (value instanceof Blob) form.append(name, value)
    else if (value instanceof Uint8Array) form.append(name, new Blob([value as BlobPart]), 'file')
    else if (value !== undefined)
      form.append(name, typeof value === 'string' ? value : JSON.stringify(value))
  }
  return form
}

/** Milliseconds before the first retry; each further one waits twice as long, up to the longest. */
const firstDelay = 500
const longestDelay = 8_000
/** Seconds; a longer `Retry-After` is thrown at once. */
const longestRetryAfter = 60

/** Sends until there is an answer, the tries are used up, or sending again could do something twice. */
async function withRetries<Answer>(
  { route, takesKey, reads }: Operation,
  { timeout = 600, retries = 4 }: VaultOptions,
  signal: AbortSignal | undefined,
  send: (signal: AbortSignal) => Promise<Answer>,
): Promise<Answer> {
  const mayRepeat = takesKey === true || reads === true || !route.startsWith('POST ')
  // Whether a try may still run whose answer did not come.
  let isUnanswered = false
  for (let retry = 0; ; retry++) {
    try {
      return await withTimeout(route, timeout, signal, send)
    } catch (error) {
      const delay = delayAfter(error, { mayRepeat, isUnanswered, retry })
      isUnanswered ||= !(error instanceof VaultError)
      if (delay === undefined || retry >= retries || signal?.aborted) throw error
      await wait(delay, signal)
    }
  }
}

/** Milliseconds until the next try; undefined: there is none. */
function delayAfter(
  error: unknown,
  { mayRepeat, isUnanswered, retry }: { mayRepeat: boolean; isUnanswered: boolean; retry: number },
): number | undefined {
  const backoff = Math.min(longestDelay, firstDelay * 2 ** retry) * (0.5 + Math.random() / 2)
  if (!(error instanceof VaultError)) return mayRepeat ? backoff : undefined
  const { status, retryAfter } = error
  const isPassing =
    status === 429 ||
    status === 503 ||
    (mayRepeat && (status === 500 || status === 502 || status === 504)) ||
    (mayRepeat && status === 409 && isUnanswered)
  if (!isPassing || (retryAfter ?? 0) > longestRetryAfter) return undefined
  // Clients that were refused together do not come back together.
  return retryAfter === undefined ? backoff : retryAfter * 1_000 + Math.random() * 250
}

async function withTimeout<Answer>(
  route: string,
  seconds: number,
  signal: AbortSignal | undefined,
  send: (signal: AbortSignal) => Promise<Answer>,
): Promise<Answer> {
  const ending = new AbortController()
  const onAbort = (): void => ending.abort(signal!.reason)
  if (signal?.aborted) onAbort()
  signal?.addEventListener('abort', onAbort)
  const timer = setTimeout(
    () => ending.abort(new DOMException(`${route}: no answer within ${seconds} s`, 'TimeoutError')),
    seconds * 1_000,
  )
  try {
    return await send(ending.signal)
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', onAbort)
  }
}

/** Waits, and less when the caller ends the call. */
function wait(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise(resolve => {
    const timer = setTimeout(end, milliseconds)
    function end(): void {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
      resolve()
    }
    signal?.addEventListener('abort', end)
  })
}
