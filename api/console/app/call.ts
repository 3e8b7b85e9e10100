import type { AnswerOf, RequestTo, Route } from '#api/client/client.ts'
import { VaultError, vaultClient } from '#api/client/client.ts'
import { credential, hold } from '#api/console/app/credential.ts'

/** What went wrong, for people. */
export type Fault = { words: string; hint: string | undefined; status: number }

/**
 * Asks the service with the credential of this tab. A credential that is no longer good signs out.
 *
 * @throws VaultError, or what `fetch` throws.
 */
export async function call<Name extends Route>(
  route: Name,
  request?: RequestTo<Name>,
  signal?: AbortSignal,
): Promise<AnswerOf<Name>> {
  try {
    return await callWith(credential()?.key ?? '', route, request, signal)
  } catch (error) {
    if (error instanceof VaultError && error.status === 401 && credential()) {
      hold(null, 'The credential is no longer valid.')
    }
    throw error
  }
}

/** The same with another credential, which is left where it is. */
export const callWith = <Name extends Route>(
  key: string,
  route: Name,
  request?: RequestTo<Name>,
  signal?: AbortSignal,
): Promise<AnswerOf<Name>> =>
  vaultClient(location.origin, key).call(route, request, signal ? { signal } : {})

/** The answer as it streams in, for what is too large for a value. */
export async function stream(path: string, headers: Record<string, string>): Promise<Response> {
  const response = await fetch(path, {
    headers: { authorization: `Bearer ${credential()?.key ?? ''}`, ...headers },
  })
  if (response.ok) return response
  const body = (await response.json().catch(() => ({}))) as { error?: string; hint?: string }
  throw new VaultError(path, response.status, body)
}

/** Something only people need to know about: nothing is thrown. */
export class Told extends Error {}

export function faultOf(error: unknown): Fault {
  if (error instanceof VaultError) {
    const words = error.message.replace(/^[A-Z]* ?\/\S*: \d+ ?/, '')
    return {
      words: words || `The service answered ${error.status}`,
      hint: error.hint,
      status: error.status,
    }
  }
  if (error instanceof Told) return { words: error.message, hint: undefined, status: 0 }
  return {
    words: 'The service did not answer',
    hint: 'It may be restarting, or the connection is down. Try again in a moment.',
    status: 0,
  }
}
