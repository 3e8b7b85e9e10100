import {
  vaultClient,
  VaultError,
  type EndpointResponse,
  type EndpointRequest,
  type Route,
} from '#api/client/client.ts'
import { Refusal } from '#shared/core/errors.ts'

/** An answer, and how long it took from the first byte sent to the last one read. */
type TimedAnswer<Answer> = { answer: Answer; ms: number }

export type TimedClient = {
  /**
   * Calls an endpoint by its name in the contract.
   *
   * @throws Refusal `upstream` with the service's own words when it says no, `unavailable` when it does
   *   not answer within a minute.
   */
  call<Name extends Route>(
    route: Name,
    request?: EndpointRequest<Name>,
  ): Promise<TimedAnswer<EndpointResponse<Name>>>
}

const callTimeoutMs = 60_000

/** Speaks to a service with a Memory Key, until `signal` says to give up. */
export function createTimedClient(baseUrl: string, key: string, signal: AbortSignal): TimedClient {
  const client = vaultClient(baseUrl, key)
  return {
    async call(route, request) {
      const begun = performance.now()
      const abortSignal = AbortSignal.any([signal, AbortSignal.timeout(callTimeoutMs)])
      const answer = await client
        .call(route, request, { signal: abortSignal })
        .catch((error: unknown) => throwRefusal(baseUrl, error))
      return { answer, ms: performance.now() - begun }
    },
  }
}

function throwRefusal(baseUrl: string, error: unknown): never {
  if (error instanceof VaultError) throw new Refusal('upstream', error.message, error.hint)
  const { cause, message } = error as Error
  const why = cause instanceof Error && cause.message ? cause.message : message
  throw new Refusal('unavailable', `${baseUrl} does not answer: ${why}`)
}
