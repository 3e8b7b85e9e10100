import type { EndpointResponse, EndpointRequest, Route } from '#api/client/client.ts'
import { VaultError, vaultClient } from '#api/client/client.ts'
import { currentCredential, setCredential } from '#api/console/app/credential.ts'

/** An error as it is displayed. */
export type Fault = { message: string; hint: string | undefined; status: number }

/**
 * Calls the service with the credential of this tab. A credential that is no longer valid is removed.
 *
 * @throws VaultError, or what `fetch` throws.
 */
export async function call<Name extends Route>(
  route: Name,
  request?: EndpointRequest<Name>,
  signal?: AbortSignal,
): Promise<EndpointResponse<Name>> {
  try {
    return await callWithKey(currentCredential()?.key ?? '', route, request, signal)
  } catch (error) {
    if (error instanceof VaultError && error.status === 401 && currentCredential()) {
      setCredential(null, 'The credential is no longer valid.')
    }
    throw error
  }
}

/** Calls the service with another credential; one that is not valid is not removed. */
export const callWithKey = <Name extends Route>(
  key: string,
  route: Name,
  request?: EndpointRequest<Name>,
  signal?: AbortSignal,
): Promise<EndpointResponse<Name>> =>
  vaultClient(location.origin, key).call(route, request, signal ? { signal } : {})

/** Calls the service about the vault of a user of the account, with the owner's key of this tab. */
export const callForUser = <Name extends Route>(
  user: string,
  route: Name,
  request?: EndpointRequest<Name>,
  signal?: AbortSignal,
): Promise<EndpointResponse<Name>> =>
  vaultClient(location.origin, currentCredential()?.key ?? '', { user }).call(
    route,
    request,
    signal ? { signal } : {},
  )

/** Calls the service and returns the response as a stream. */
export async function fetchStream(
  path: string,
  headers: Record<string, string>,
): Promise<Response> {
  const response = await fetch(path, {
    headers: { authorization: `Bearer ${currentCredential()?.key ?? ''}`, ...headers },
  })
  if (response.ok) return response
  const body = (await response.json().catch(() => ({}))) as { error?: string; hint?: string }
  throw new VaultError(path, response.status, body)
}

/** An error whose message is displayed as it is. */
export class UserError extends Error {}

export function toFault(error: unknown): Fault {
  if (error instanceof VaultError) {
    const message = error.message.replace(/^[A-Z]* ?\/\S*: \d+ ?/, '')
    return {
      message: message || `The service answered ${error.status}`,
      hint: error.hint,
      status: error.status,
    }
  }
  if (error instanceof UserError) return { message: error.message, hint: undefined, status: 0 }
  return {
    message: 'The service did not answer',
    hint: 'It may be restarting, or the connection is down. Try again in a moment.',
    status: 0,
  }
}
