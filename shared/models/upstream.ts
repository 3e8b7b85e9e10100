import type { Readable } from 'node:stream'
import type { Agent, request as UndiciRequest } from 'undici'
import { Refusal } from '#shared/core/errors.ts'
import { providerSeconds } from '#shared/core/metrics.ts'
import { withSpan } from '#shared/core/trace.ts'

type UpstreamRequest = {
  /** The provider that errors name. */
  provider: string
  url: URL
  headers: Record<string, string>
  /** `POST`, when missing. */
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  body: Buffer | Readable | null
  /** Aborts the call at any time. */
  signal: AbortSignal
}

/** A provider's response; the body's bytes are unchanged. */
export type UpstreamResponse = {
  status: number
  /** Names in lower case. */
  headers: Record<string, string | string[] | undefined>
  body: Readable
}

export type Upstream = {
  /**
   * Sends a request to a provider and returns its response, errors included. Redirects are not followed:
   * the key is for this address.
   *
   * @throws Refusal `upstream` when the provider is out of reach, sends no response head in time,
   *   or redirects; the signal's reason when that fires first.
   */
  send(request: UpstreamRequest): Promise<UpstreamResponse>
  close(): Promise<void>
}

const connectMs = 10_000

type UpstreamTimeouts = {
  /** Until the head of the response; a reasoning model that does not stream takes minutes. */
  firstByteMs: number
  /** Between two chunks of the body. */
  idleMs: number
}

/** Connections to all providers, kept open for further calls. */
export function createUpstream({ firstByteMs, idleMs }: UpstreamTimeouts): Upstream {
  let client: Promise<{ request: typeof UndiciRequest; dispatcher: Agent }> | undefined
  // Loaded lazily: worker processes never load the client.
  const open = async () => {
    const { Agent, request } = await import('undici')
    const dispatcher = new Agent({
      connect: { timeout: connectMs },
      headersTimeout: firstByteMs,
      bodyTimeout: idleMs,
      // Providers close idle connections after a minute or more; one that closes first costs a call.
      keepAliveTimeout: 15_000,
      allowH2: false,
    })
    return { request, dispatcher }
  }
  return {
    async send({ provider, url, headers, method = 'POST', body, signal }) {
      assertNoMemoryKey(url, headers)
      const { request, dispatcher } = await (client ??= open())
      signal.throwIfAborted()
      const options = { method, dispatcher, headers, body, signal } as const
      const response = await withLatencyMetric(provider, () => request(url, options)).catch(
        (error: Error) => {
          // An error of the body that is still being read is the client's error.
          if (signal.aborted || error instanceof Refusal) throw error
          throw toRefusal(provider, error)
        },
      )
      const { statusCode: status, headers: responseHeaders } = response
      if (status < 300 || status >= 400 || status === 304) {
        return { status, headers: responseHeaders, body: response.body }
      }
      response.body.on('error', () => {}).destroy()
      throw new Refusal(
        'upstream',
        `${provider} answers with a redirect`,
        'Redirects are not followed; the operator should check its base URL',
      )
    },
    async close() {
      await (await client)?.dispatcher.destroy()
    },
  }
}

/** Measured until the head of the response; status 0 when there was none. */
function withLatencyMetric<Answer extends { statusCode: number }>(
  provider: string,
  send: () => Promise<Answer>,
): Promise<Answer> {
  const stopTimer = providerSeconds.startTimer({ provider })
  return withSpan('provider', { 'server.name': provider }, async span => {
    let status = 0
    try {
      const answer = await send()
      status = answer.statusCode
      return answer
    } finally {
      stopTimer({ status })
      span.setAttribute('http.response.status_code', status)
    }
  })
}

function toRefusal(provider: string, error: Error): Refusal {
  const { code = '' } = error as { code?: string }
  const late = /TIMEOUT/.test(code)
  return new Refusal(
    'upstream',
    late ? `${provider} did not answer in time` : `${provider} is out of reach`,
    'Nothing is wrong with the request; try again, and if it lasts look at the state of the provider',
  )
}

/** The last check: callers remove Memory Keys. One that arrives here is a bug of ours. */
function assertNoMemoryKey(url: URL, headers: Record<string, string>): void {
  const values = [url.href, ...url.searchParams.values(), ...Object.values(headers)]
  if (values.some(value => /mk_[A-Za-z0-9_-]{16}/.test(value))) {
    throw new Error('a Memory Key was about to leave the service')
  }
}
