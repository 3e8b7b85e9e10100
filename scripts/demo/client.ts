import type { Endpoints, ErrorBody } from '#api/contract/types.ts'
import { Refusal } from '#shared/errors.ts'

/** `POST /v1/memory/search` and so on. */
type Route = keyof Endpoints

type AnswerOf<Name extends Route> = Endpoints[Name]['answers'][keyof Endpoints[Name]['answers']]

/** An answer, and how long it took from the first byte sent to the last one read. */
type Timed<Answer> = { answer: Answer; ms: number }

export type Client = {
  /**
   * Calls an endpoint by its name in the contract.
   *
   * @throws Refusal `upstream` with the service's own words when it says no, `unavailable` when it does
   *   not answer within a minute.
   */
  call<Name extends Route>(
    route: Name,
    request?: { query?: string; body?: object },
  ): Promise<Timed<AnswerOf<Name>>>
}

const patienceMs = 60_000

/** Speaks to a service with a Memory Key, until `signal` says to give up. */
export function clientOf(baseUrl: string, key: string, signal: AbortSignal): Client {
  return {
    async call(route, { query = '', body } = {}) {
      const [method = '', path = ''] = route.split(' ')
      const begun = performance.now()
      const { status, text } = await send(`${baseUrl}${path}${query}`, {
        method,
        headers: {
          authorization: `Bearer ${key}`,
          ...(body && { 'content-type': 'application/json' }),
        },
        signal: AbortSignal.any([signal, AbortSignal.timeout(patienceMs)]),
        ...(body && { body: JSON.stringify(body) }),
      })
      const ms = performance.now() - begun
      if (status >= 300) throw refused(route, status, text)
      return { answer: JSON.parse(text) as AnswerOf<typeof route>, ms }
    },
  }
}

async function send(url: string, request: RequestInit): Promise<{ status: number; text: string }> {
  try {
    const response = await fetch(url, request)
    return { status: response.status, text: await response.text() }
  } catch (error) {
    const { cause, message } = error as Error
    const why = cause instanceof Error && cause.message ? cause.message : message
    throw new Refusal('unavailable', `${url} does not answer: ${why}`)
  }
}

function refused(route: string, status: number, text: string): Refusal {
  let body: Partial<ErrorBody> = {}
  try {
    body = JSON.parse(text) as ErrorBody
  } catch {
    // Whoever answers without JSON is not this service; the status says enough.
  }
  return new Refusal('upstream', `${route}: ${status} ${body.error ?? ''}`.trim(), body.hint)
}
