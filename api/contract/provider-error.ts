import type { RefusalReason } from '#shared/core/errors.ts'

/** Families of clients: an SDK shows the field in which its provider writes the message. */
export type ErrorFamily = 'openai' | 'anthropic' | 'google' | 'scim'

/** `internal` is a fault of this service. */
export type ErrorReason = RefusalReason | 'internal'

/** Paths of providers and of SCIM; every other path is one of this service. */
const pathFamilies: [pattern: RegExp, family: ErrorFamily | 'shared'][] = [
  [/^\/scim(?:\/|$)/, 'scim'],
  [/^\/v1\/(?:messages|complete)(?:\/|$)/, 'anthropic'],
  [/^\/(?:v1|v1beta)\/models\/.+:[A-Za-z]+$/, 'google'],
  [/^\/(?:upload\/)?v1beta\//, 'google'],
  [/^\/v1\/(?:files|models)\/./, 'shared'],
  [/^\/v1\/files$/, 'shared'],
  [/^\/v1\/(?:chat|responses|conversations|embeddings|completions|moderations)(?:\/|$)/, 'openai'],
  [/^\/v1\/(?:audio|images|uploads|batches|rerank)(?:\/|$)/, 'openai'],
]

/**
 * The family in whose shape errors of a path are written; undefined for paths of this service.
 *
 * @param anthropicVersion the header of that name, which only Anthropic's clients send on shared paths
 */
export function errorFamilyOf(path: string, anthropicVersion: string): ErrorFamily | undefined {
  const family = pathFamilies.find(([pattern]) => pattern.test(path))?.[1]
  if (family !== 'shared') return family
  return anthropicVersion === '' ? 'openai' : 'anthropic'
}

type Words = {
  openai: [type: string, code: string]
  anthropic: string
  /** Google's status. */
  google: string
}

const badRequest = 'invalid_request_error'

/** How each family names what went wrong. */
const words: Record<ErrorReason, Words> = {
  invalid: {
    openai: [badRequest, 'invalid_request'],
    anthropic: badRequest,
    google: 'INVALID_ARGUMENT',
  },
  unauthenticated: {
    openai: [badRequest, 'invalid_api_key'],
    anthropic: 'authentication_error',
    google: 'UNAUTHENTICATED',
  },
  unpaid: {
    openai: ['insufficient_quota', 'insufficient_quota'],
    anthropic: 'billing_error',
    google: 'FAILED_PRECONDITION',
  },
  forbidden: {
    openai: ['permission_error', 'forbidden'],
    anthropic: 'permission_error',
    google: 'PERMISSION_DENIED',
  },
  missing: { openai: [badRequest, 'not_found'], anthropic: 'not_found_error', google: 'NOT_FOUND' },
  conflict: { openai: [badRequest, 'conflict'], anthropic: badRequest, google: 'ABORTED' },
  'too-large': {
    openai: [badRequest, 'request_too_large'],
    anthropic: 'request_too_large',
    google: 'INVALID_ARGUMENT',
  },
  unsupported: {
    openai: [badRequest, 'unsupported_media_type'],
    anthropic: badRequest,
    google: 'INVALID_ARGUMENT',
  },
  limited: {
    openai: ['requests', 'rate_limit_exceeded'],
    anthropic: 'rate_limit_error',
    google: 'RESOURCE_EXHAUSTED',
  },
  upstream: {
    openai: ['server_error', 'provider_unavailable'],
    anthropic: 'api_error',
    google: 'UNAVAILABLE',
  },
  unavailable: {
    openai: ['server_error', 'service_unavailable'],
    anthropic: 'overloaded_error',
    google: 'UNAVAILABLE',
  },
  internal: {
    openai: ['server_error', 'internal_error'],
    anthropic: 'api_error',
    google: 'INTERNAL',
  },
}

/** RFC 7644, table 9. */
const scimTypes: Partial<Record<ErrorReason, string>> = {
  invalid: 'invalidValue',
  conflict: 'uniqueness',
}

type ErrorText = {
  status: number
  reason: ErrorReason
  error: string
  hint?: string | undefined
  requestId: string
}

/**
 * The body of an error: `{error, hint?}`, or in the shape of a family, with the hint in its message too,
 * because its SDKs show nothing else.
 */
export function presentError(
  family: ErrorFamily | undefined,
  { status, reason, error, hint, requestId }: ErrorText,
): object {
  const beside = hint ? { hint } : {}
  if (family === undefined) return { error, ...beside }
  const message = hint ? `${error}. ${hint}` : error
  if (family === 'scim') {
    const scimType = scimTypes[reason]
    const schemas = ['urn:ietf:params:scim:api:messages:2.0:Error']
    return { schemas, status: String(status), ...(scimType && { scimType }), detail: message }
  }
  if (family === 'google') {
    return { error: { code: status, message, status: words[reason].google }, ...beside }
  }
  if (family === 'anthropic') {
    const type = words[reason].anthropic
    return { type: 'error', error: { type, message }, request_id: requestId, ...beside }
  }
  const [type, code] = words[reason].openai
  return { error: { message, type, param: null, code }, ...beside }
}
