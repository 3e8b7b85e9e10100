import type { Readable } from 'node:stream'
import type { Agent, request as UndiciRequest } from 'undici'
import { Refusal } from '#shared/core/errors.ts'
import { refusal } from '#shared/core/refusal.ts'
import { timeProviderCall } from '#shared/core/timed-fetch.ts'

/** A provider's response; the body's bytes are unchanged. */
export type UpstreamResponse = {
  status: number
  /** Names in lower case. */
  headers: Record<string, string | string[] | undefined>
  body: Readable
}

const connectMs = 10_000

type UpstreamTimeouts = {
  /** Until the head of the response; a reasoning model that does not stream takes minutes. */
  firstByteMs: number
  /** Between two chunks of the body. */
  idleMs: number
}

/** Connections to all providers, kept open for further calls. */
export class Upstream {
  readonly #timeouts: UpstreamTimeouts
  #client: Promise<{ request: typeof UndiciRequest; dispatcher: Agent }> | undefined

  constructor(timeouts: UpstreamTimeouts) {
    this.#timeouts = timeouts
  }

  /**
   * Sends a request to a provider and returns its response, errors included. Redirects are not followed:
   * the key is for this address.
   *
   * @throws Refusal `upstream` when the provider is out of reach, sends no response head in time,
   *   or redirects; the signal's reason when that fires first.
   */
  async send(call: {
    /** As errors name the provider. */
    provider: string
    url: URL
    headers: Record<string, string>
    /** `POST`, when missing. */
    method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
    body: Buffer | Readable | null
    signal: AbortSignal
  }): Promise<UpstreamResponse> {
    const { provider, url, headers, method = 'POST', body, signal } = call
    assertNoMemoryKey(url, headers)
    const { request, dispatcher } = await (this.#client ??= this.#open())
    signal.throwIfAborted()
    const response = await timeProviderCall(
      provider,
      () => request(url, { method, dispatcher, headers, body, signal }),
      ({ statusCode }) => statusCode,
    ).catch((error: Error) => {
      // An error of the body that is still being read is the client's error.
      if (signal.aborted || error instanceof Refusal) throw error
      throw toRefusal(provider, error)
    })
    const { statusCode: status } = response
    if (status < 300 || status >= 400 || status === 304)
      return { status, headers: response.headers, body: response.body }
    response.body.on('error', () => {}).destroy()
    throw refusal('upstream', 'providerRedirects', { provider })
  }

  async close(): Promise<void> {
    await (await this.#client)?.dispatcher.destroy()
  }

  /** Loads the client with the first call: worker processes make none. */
  async #open() {
    const { Agent, request } = await import('undici')
    const dispatcher = new Agent({
      connect: { timeout: connectMs },
      headersTimeout: this.#timeouts.firstByteMs,
      bodyTimeout: this.#timeouts.idleMs,
      // Providers close idle connections after a minute or more; one that closes first costs a call.
      keepAliveTimeout: 15_000,
      allowH2: false,
    })
    return { request, dispatcher }
  }
}

function toRefusal(provider: string, error: Error): Refusal {
  const { code = '' } = error as { code?: string }
  return new Refusal(
    'upstream',
    `${provider} ${/TIMEOUT/.test(code) ? 'did not answer in time' : 'is out of reach'}`,
    'Nothing is wrong with the request; try again, and if it lasts look at the state of the provider',
  )
}

/** The last check: callers remove Memory Keys. One that arrives here is a bug of ours. */
function assertNoMemoryKey(url: URL, headers: Record<string, string>): void {
  const inQuery = url.search === '' ? [] : url.searchParams.values()
  const values = [url.href, ...inQuery, ...Object.values(headers)]
  if (values.some(value => /mk_[A-Za-z0-9_-]{16}/.test(value)))
    throw new Error('a Memory Key was about to leave the service')
}
