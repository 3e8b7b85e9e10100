import errorWords from '#api/contract/error-words.json' with { type: 'json' }
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

/** How each family names what went wrong: OpenAI's type and code, Google's status, of SCIM table 9 of RFC 7644. */
const words = errorWords as Record<
  ErrorReason,
  { openai: string[]; anthropic: string; google: string; scim?: string }
>

/**
 * The body of an error: `{error, hint?}`, or in the shape of a family, with the hint in its message too,
 * because its SDKs show nothing else.
 */
export function presentError(
  family: ErrorFamily | undefined,
  text: {
    status: number
    reason: ErrorReason
    error: string
    hint?: string | undefined
    requestId: string
  },
): object {
  const { status, reason, error, hint, requestId } = text
  const beside = hint ? { hint } : {}
  if (family === undefined) return { error, ...beside }
  const message = hint ? `${error}. ${hint}` : error
  if (family === 'scim') {
    const { scim: scimType } = words[reason]
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
