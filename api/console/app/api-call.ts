import type { EndpointRequest, EndpointResponse, Route, VaultClient } from '#api/client/client.ts'
import { VaultError, vaultClient } from '#api/client/client.ts'
import { Refusal } from '#shared/core/errors.ts'
import { currentCredential, setCredential } from '#api/console/app/credential.ts'

/** An error as a page displays it. */
export type Fault = { message: string; hint: string | undefined }

/**
 * Calls the service with the credential of this tab. Signs out when the credential is no longer valid.
 *
 * @param user of the account, whose vault is meant (`useVaultUser`)
 * @throws VaultError, or what `fetch` throws.
 */
export async function call<Name extends Route>(
  route: Name,
  request?: EndpointRequest<Name>,
  signal?: AbortSignal,
  user?: string,
): Promise<EndpointResponse<Name>> {
  try {
    return await clientWith({ user }).call(route, request, signal && { signal })
  } catch (error) {
    if (error instanceof VaultError && error.status === 401 && currentCredential()) {
      setCredential(null, 'The credential is no longer valid.')
    }
    throw error
  }
}

/** A client that stays signed in when its credential is not valid: with another key, or about a user. */
export const clientWith = ({
  key = currentCredential()?.key ?? '',
  user,
}: {
  key?: string
  /** A user of the account; its owner's key is the credential. */
  user?: string | undefined
}): VaultClient =>
  vaultClient(location.origin, key, { fetch: fetchToInspect, ...(user !== undefined && { user }) })

/** Posts that read. */
const readingPosts = /\/v1\/memory\/(?:search|date-search|prepare|inspect)(?:\?|$)/

/** What an owner reads in the console is no use of a vault. */
const fetchToInspect: typeof fetch = (address, init) => {
  const isReadingPost = typeof address === 'string' && readingPosts.test(address)
  const isReading = init?.method === 'GET' || isReadingPost
  if (!isReading) return fetch(address, init)
  const headers = new Headers(init?.headers)
  headers.set('x-memory-inspection', 'true')
  return fetch(address, { ...init, headers })
}

/** Calls the service and returns the response as a stream. */
export async function fetchStream(
  path: string,
  headers: Record<string, string>,
): Promise<Response> {
  const response = await fetch(path, {
    headers: {
      authorization: `Bearer ${currentCredential()?.key ?? ''}`,
      'x-memory-inspection': 'true',
      ...headers,
    },
  })
  if (response.ok) return response
  const body = (await response.json().catch(() => ({}))) as { error?: string; hint?: string }
  throw new VaultError(path, response.status, body)
}

type EmptyKeys<Fields> = {
  [Key in keyof Fields]: '' extends Fields[Key] ? Key : undefined extends Fields[Key] ? Key : never
}[keyof Fields]
type Filled<Fields> = Omit<Fields, EmptyKeys<Fields>> & {
  [Key in EmptyKeys<Fields>]?: Exclude<Fields[Key], '' | undefined>
}

/** Leaves out fields that are empty or undefined, such as filters that are not set. */
export const filled = <const Fields extends object>(fields: Fields): Filled<Fields> =>
  Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== '' && value !== undefined),
  ) as Filled<Fields>

const pollIntervalMs = 400

/**
 * Polls an operation until it has finished.
 *
 * @param onShare receives how much of it is done, from 0 to 1
 * @returns the body of its outcome
 * @throws UserError when it failed or was cancelled
 */
export async function pollOperation<Outcome>(
  id: string,
  onShare: (share: number) => void,
): Promise<Outcome> {
  for (;;) {
    const { state, progress, outcome } = await call('GET /v1/operations/:id', { params: { id } })
    onShare(progress.total > 0 ? progress.done / progress.total : 0)
    if (state === 'cancelled') throw new UserError('It was cancelled')
    if (outcome && outcome.status < 300) return outcome.body as Outcome
    if (outcome) throw new UserError((outcome.body as { error?: string }).error ?? 'It failed')
    await new Promise(resolve => void setTimeout(resolve, pollIntervalMs))
  }
}

/** An error whose message pages display as it is. */
export class UserError extends Error {
  readonly hint: string | undefined

  constructor(
    message: string,
    { hint, ...options }: ErrorOptions & { hint?: string | undefined } = {},
  ) {
    super(message, options)
    this.hint = hint
  }
}

export function toFault(error: unknown): Fault {
  if (error instanceof VaultError) {
    return { message: error.detail || `The service answered ${error.status}`, hint: error.hint }
  }
  if (error instanceof UserError) return { message: error.message, hint: error.hint }
  if (error instanceof Refusal) return { message: error.message, hint: error.hint }
  return {
    message: 'The service did not answer',
    hint: 'It may be restarting, or the connection is down. Try again in a moment.',
  }
}
