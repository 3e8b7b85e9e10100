import type { Endpoints, ErrorBody } from '../contract/types.ts'

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

/** An endpoint's answer; where it has several, such as 200 and 202, any of them. */
export type EndpointResponse<Name extends Route> =
  Endpoints[Name]['answers'][keyof Endpoints[Name]['answers']]

/** The service answered with an error. */
export class VaultError extends Error {
  readonly status: number
  readonly hint: string | undefined
  constructor(route: string, status: number, { error, hint }: Partial<ErrorBody>) {
    super(`${route}: ${status} ${error ?? ''}`.trim())
    this.name = 'VaultError'
    this.status = status
    this.hint = hint
  }
}

export type VaultClient = {
  /**
   * Calls an endpoint by its name in the contract.
   *
   * @returns the answer; JSON lines as text.
   * @throws VaultError for every status from 300 on; whatever `fetch` throws when there is no answer.
   */
  call<Name extends Route>(
    route: Name,
    request?: EndpointRequest<Name>,
    options?: { signal?: AbortSignal },
  ): Promise<EndpointResponse<Name>>
}

/**
 * A client of a Memory Vault, typed by its contract.
 *
 * @param baseUrl such as `https://memory.example.com`
 * @param key a Memory Key, or an admin credential for the organization endpoints
 */
export function vaultClient(
  baseUrl: string,
  key: string,
  { fetch: sendRequest = fetch }: { fetch?: typeof fetch } = {},
): VaultClient {
  const base = baseUrl.replace(/\/+$/, '')
  return {
    async call<Name extends Route>(
      route: Name,
      request?: EndpointRequest<Name>,
      { signal }: { signal?: AbortSignal } = {},
    ) {
      const { params = {}, query = {}, headers = {}, body } = (request ?? {}) as UntypedRequest
      const [method = '', path = ''] = route.split(' ')
      const target = path.replaceAll(/\/:([A-Za-z]+)/g, (_, name: string) => {
        return `/${encodeURIComponent(String(params[name]))}`
      })
      const search = new URLSearchParams(toTextFields(query)).toString()
      const lines = typeof body === 'string'
      const response = await sendRequest(`${base}${target}${search && `?${search}`}`, {
        method,
        headers: {
          authorization: `Bearer ${key}`,
          ...(body !== undefined && {
            'content-type': lines ? 'application/x-ndjson' : 'application/json',
          }),
          ...toTextFields(headers),
        },
        ...(body !== undefined && { body: lines ? body : JSON.stringify(body) }),
        ...(signal && { signal }),
      })
      const text = await response.text()
      const answer = parseJson(text)
      if (response.status >= 300) {
        throw new VaultError(route, response.status, answer ?? {})
      }
      return (answer ?? text) as EndpointResponse<Name>
    },
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

/** A response without JSON is that of another server, or a stream of lines. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}
