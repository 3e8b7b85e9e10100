import {
  vaultClient,
  VaultError,
  type EndpointResponse,
  type EndpointRequest,
  type Route,
} from '#api/client/client.ts'
import { Refusal } from '#shared/core/errors.ts'

/** An answer, and the milliseconds from the first byte sent to the last byte read. */
type TimedAnswer<Answer> = { answer: Answer; ms: number }

export type TimedClient = {
  /**
   * Calls an endpoint by its name in the contract.
   *
   * @throws Refusal `upstream` with the error of the service when it refuses, `unavailable` when it does
   *   not answer within a minute.
   */
  call<Name extends Route>(
    route: Name,
    request?: EndpointRequest<Name>,
  ): Promise<TimedAnswer<EndpointResponse<Name>>>
}

const callTimeoutMs = 60_000

/** A client of a service with a Memory Key; `signal` aborts its requests. */
export function createTimedClient(baseUrl: string, key: string, signal: AbortSignal): TimedClient {
  const client = vaultClient(baseUrl, key)
  return {
    async call(route, request) {
      const startedAt = performance.now()
      const abortSignal = AbortSignal.any([signal, AbortSignal.timeout(callTimeoutMs)])
      const answer = await client
        .call(route, request, { signal: abortSignal })
        .catch((error: unknown) => throwRefusal(baseUrl, error))
      return { answer, ms: performance.now() - startedAt }
    },
  }
}

function throwRefusal(baseUrl: string, error: unknown): never {
  if (error instanceof VaultError) throw new Refusal('upstream', error.message, error.hint)
  const { cause, message } = error as Error
  const why = cause instanceof Error && cause.message ? cause.message : message
  throw new Refusal('unavailable', `${baseUrl} does not answer: ${why}`)
}
