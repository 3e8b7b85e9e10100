import type { Endpoints, ErrorBody } from '../contract/generated/types.ts'

/** `POST /v1/memory/search` and so on: every endpoint of the contract by its method and path. */
export type Route = keyof Endpoints

type EndpointPartType<Name extends Route, Key extends string> =
  Endpoints[Name] extends Record<Key, infer Value> ? Value : undefined

/** A field that has a default may be left out. */
type WithDefaultsOptional<Value, Name extends Route> = Value extends object
  ? Omit<Value, DefaultedFields<Name>> &
      Partial<Pick<Value, Extract<keyof Value, DefaultedFields<Name>>>>
  : Value
type DefaultedFields<Name extends Route> = Extract<EndpointPartType<Name, 'defaults'>, PropertyKey>

/** The parts of a request that the endpoint takes. */
export type EndpointRequest<Name extends Route> = {
  [
    Key in 'params' as EndpointPartType<Name, Key> extends undefined ? never : Key
  ]: EndpointPartType<Name, Key>
} & {
  [
    Key in 'query' | 'headers' as EndpointPartType<Name, Key> extends undefined ? never : Key
  ]?: WithDefaultsOptional<EndpointPartType<Name, Key>, Name>
} & {
  [Key in 'body' as EndpointPartType<Name, Key> extends undefined ? never : Key]?:
    | WithDefaultsOptional<EndpointPartType<Name, Key>, Name>
    | string
}

/** Endpoints that answer with JSON lines: exports. */
export type LinesRoute = {
  [Name in Route]: Endpoints[Name] extends { lines: unknown } ? Name : never
}[Route]

/** A line of such an answer. */
export type EndpointLine<Name extends LinesRoute> = Endpoints[Name]['lines']

/** An endpoint's answer; where it has several, such as 200 and 202, any of them. JSON lines are text. */
export type EndpointResponse<Name extends Route> = Name extends LinesRoute
  ? string
  : Endpoints[Name]['answers'][keyof Endpoints[Name]['answers']]

type ErrorAnswer = Partial<Pick<ErrorBody, 'hint' | 'errors'>> & {
  error?: ErrorBody['error'] | { message?: string } | null
}

/** The service answered with an error. */
export class VaultError extends Error {
  readonly status: number
  /** What the service says is wrong; `message` has the route, the status and the hint too. */
  readonly detail: string
  readonly hint: string | undefined
  /** The first faulty lines of a file, where no line of it can be stored. */
  readonly errors: ErrorBody['errors']
  /** `X-Request-Id`: the logs of the service name the request by it. */
  readonly requestId: string | undefined
  /** `Retry-After`, in seconds: when to ask again. */
  readonly retryAfter: number | undefined
  /**
   * @param body of this service, or on paths of providers with `error.message`
   * @param headers of the answer
   */
  constructor(
    route: string,
    status: number,
    { error, hint, errors }: ErrorAnswer,
    headers: Headers = new Headers(),
  ) {
    const message = typeof error === 'object' ? error?.message : error
    super([`${route}: ${status} ${message ?? ''}`.trim(), hint].filter(Boolean).join('. '))
    this.detail = message ?? ''
    this.name = 'VaultError'
    this.status = status
    this.hint = hint
    this.errors = errors
    this.requestId = headers.get('x-request-id') ?? undefined
    this.retryAfter = readSeconds(headers.get('retry-after'))
  }
}

type CallOptions = { signal?: AbortSignal }

export type VaultClient = {
  /**
   * Calls an endpoint by its name in the contract.
   *
   * @returns the answer: JSON as its type, JSON lines and streams of events as text, sound as bytes.
   * @throws VaultError for every status from 300 on; whatever `fetch` throws when there is no answer.
   */
  call<Name extends Route>(
    route: Name,
    request?: EndpointRequest<Name>,
    options?: CallOptions,
  ): Promise<EndpointResponse<Name>>
  /**
   * Reads an answer of JSON lines as they come, such as an export that is larger than memory.
   *
   * @throws VaultError as `call` does, and Error where the connection breaks in a line.
   */
  lines<Name extends LinesRoute>(
    route: Name,
    request?: EndpointRequest<Name>,
    options?: CallOptions,
  ): AsyncGenerator<EndpointLine<Name>>
}

/**
 * A client of a Memory Vault, typed by its contract.
 *
 * @param baseUrl such as `https://memory.example.com`
 * @param key a Memory Key, or an admin credential for the organization endpoints
 * @param options.user your id of the user whose vault each call opens, with the key that was made with the
 *   account; leave it out for calls that are about the account
 */
export function vaultClient(
  baseUrl: string,
  key: string,
  { fetch: sendRequest = fetch, user }: { fetch?: typeof fetch; user?: string } = {},
): VaultClient {
  const base = baseUrl.replace(/(?<!\/)\/+$/, '')

  /** The answer of an endpoint, its body not yet read. */
  async function send(
    route: string,
    { params = {}, query = {}, headers = {}, body }: UntypedRequest = {},
    { signal }: CallOptions = {},
  ): Promise<Response> {
    const [method = '', path = ''] = route.split(' ')
    const target = path.replace(/\/:([A-Za-z]+)/g, (_, name: string) => {
      return `/${encodeURIComponent(String(params[name]))}`
    })
    const search = new URLSearchParams(toTextFields(query)).toString()
    const isForm = typeof FormData !== 'undefined' && body instanceof FormData
    const isSent = typeof body === 'string' || body instanceof Uint8Array || isForm
    const response = await sendRequest(`${base}${target}${search && `?${search}`}`, {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        ...(user !== undefined && { 'x-memory-user': toHeaderBytes(user) }),
        // `fetch` names the boundary of a form.
        ...(body !== undefined &&
          !isForm && { 'content-type': isSent ? 'application/x-ndjson' : 'application/json' }),
        ...mapValues(toTextFields(headers), toHeaderBytes),
      },
      ...(body !== undefined && { body: isSent ? (body as BodyInit) : JSON.stringify(body) }),
      ...(signal && { signal }),
    })
    if (response.status < 300) return response
    const answer = parseJson(await response.text()) ?? {}
    throw new VaultError(route, response.status, answer, response.headers)
  }

  return {
    async call(route, request, options) {
      return (await readBody(await send(route, request, options))) as never
    },
    async *lines(route, request, options) {
      const { body } = await send(route, request, options)
      for await (const line of readLines(body)) yield JSON.parse(line) as never
    },
  }
}

/** By its type: an export of one line is text, too, and no object. */
async function readBody(response: Response): Promise<unknown> {
  const type = response.headers.get('content-type') ?? ''
  if (/^(?:audio|image|application\/octet-stream)\b/.test(type)) {
    return new Uint8Array(await response.arrayBuffer())
  }
  const text = await response.text()
  const isJson = type === '' || /^application\/json\b/.test(type)
  return isJson ? (parseJson(text) ?? text) : text
}

async function* readLines(body: ReadableStream<Uint8Array> | null): AsyncGenerator<string> {
  if (!body) return
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      const lines = (rest + decoder.decode(value, { stream: !done })).split('\n')
      rest = lines.pop()!
      for (const line of lines) if (line.trim() !== '') yield line
      if (done) break
    }
    if (rest.trim() !== '') yield rest
  } finally {
    await reader.cancel()
  }
}

type Fields = Record<string, unknown>
type UntypedRequest = { params?: Fields; query?: Fields; headers?: Fields; body?: unknown }

const toTextFields = (fields: Fields): Record<string, string> =>
  Object.fromEntries(
    Object.entries(fields)
      .filter(([, value]) => value !== undefined && value !== null)
      .map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]),
  )

const mapValues = (
  fields: Record<string, string>,
  change: (text: string) => string,
): Record<string, string> =>
  Object.fromEntries(Object.entries(fields).map(([name, text]) => [name, change(text)]))

/** `fetch` takes a byte for each character of a header; the service reads them as UTF-8. */
const toHeaderBytes = (text: string): string =>
  Array.from(new TextEncoder().encode(text), byte => String.fromCharCode(byte)).join('')

/** Seconds; a provider may send a date instead, which is no number. */
const readSeconds = (text: string | null): number | undefined =>
  text !== null && /^\d+$/.test(text) ? Number(text) : undefined

/** A response without JSON is that of another server. */
function parseJson(text: string): ErrorAnswer | undefined {
  try {
    return JSON.parse(text) as ErrorAnswer
  } catch {
    return undefined
  }
}
