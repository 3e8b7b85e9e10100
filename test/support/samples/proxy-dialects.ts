import type { ApiFormat } from '#shared/core/provider-registry.ts'
import { goldenAnswers, type GoldenAnswer } from '#test/support/samples/golden/index.ts'
import { modelNames } from '#test/support/doubles/model-provider/clients.ts'
import type { FamilyName } from '#test/support/doubles/model-provider/proxy-fixture.ts'

/** How a model is called in each dialect: what the tables of `test/api/proxy/matrix` are multiplied with. */
export type ProxyDialect = {
  format: ApiFormat
  provider: FamilyName
  /** Path and query. */
  path(stream: boolean): string
  /** A request of one user message; `message` are more fields of it. */
  body(said: string, options?: { stream?: boolean; message?: object }): object
  /** A stream up to the middle of its text, which is `begun`. */
  begin: Buffer
  begun: string
}

/** The bytes of a golden stream up to where it was cut off by its provider. */
const cutStream = (format: ApiFormat): GoldenAnswer =>
  goldenAnswers.find(({ name }) => name === `${format}/cut.sse`)!

const begins = (format: ApiFormat) => {
  const { bytes, reply } = cutStream(format)
  return { begin: bytes, begun: reply.text }
}

export const proxyDialects: readonly ProxyDialect[] = [
  {
    format: 'openai',
    provider: 'openai',
    path: () => '/v1/chat/completions',
    body: (said, { stream = false, message } = {}) => ({
      model: modelNames.openai,
      stream,
      messages: [{ role: 'user', content: said, ...message }],
    }),
    ...begins('openai'),
  },
  {
    format: 'responses',
    provider: 'openai',
    path: () => '/v1/responses',
    body: (said, { stream = false, message } = {}) => ({
      model: modelNames.openai,
      stream,
      input: [{ role: 'user', content: said, ...message }],
    }),
    ...begins('responses'),
  },
  {
    format: 'anthropic',
    provider: 'anthropic',
    path: () => '/v1/messages',
    body: (said, { stream = false, message } = {}) => ({
      model: modelNames.anthropic,
      max_tokens: 50,
      stream,
      messages: [{ role: 'user', content: said, ...message }],
    }),
    ...begins('anthropic'),
  },
  {
    format: 'google',
    provider: 'google',
    path: stream =>
      `/v1beta/models/${modelNames.google}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    body: (said, { message } = {}) => ({
      contents: [{ role: 'user', parts: [{ text: said }], ...message }],
    }),
    ...begins('google'),
  },
]

type CallOptions = {
  stream?: boolean
  message?: object
  /** More fields of the body. */
  more?: object
  headers?: Record<string, string>
  /** Without the question mark. */
  query?: string
  signal?: AbortSignal
}

/** Sends one user message to the service at `base`; without a key the headers have the credentials. */
export function callModel(
  base: string,
  key: string,
  dialect: ProxyDialect,
  said: string,
  { stream = false, message = {}, more = {}, headers = {}, query, signal }: CallOptions = {},
): Promise<Response> {
  const path = dialect.path(stream)
  const search = query === undefined ? '' : `${path.includes('?') ? '&' : '?'}${query}`
  return fetch(base + path + search, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(key !== '' && { authorization: `Bearer ${key}` }),
      ...headers,
    },
    body: JSON.stringify({ ...dialect.body(said, { stream, message }), ...more }),
    ...(signal && { signal }),
  })
}
