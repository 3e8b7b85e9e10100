import type { Context } from 'koa'
import type { Caller } from '#shared/access/caller.ts'
import { Refusal } from '#shared/core/errors.ts'
import type { Shape } from '#shared/core/shape.ts'
import { sanitizeText } from '#shared/core/sanitize-text.ts'

/**
 * The checked query parameters, converted to their types.
 *
 * @throws Refusal `invalid`, also for a parameter given twice.
 */
export function parseQuery<Query>(ctx: Context, shape: Shape<Query>): Query {
  const given = Object.create(null) as Record<string, string>
  for (const [name, value] of Object.entries(ctx.query)) {
    if (Array.isArray(value)) {
      throw new Refusal('invalid', `${name.slice(0, 64)} is given more than once in the query`)
    }
    if (value !== undefined) given[name] = restoreTimezonePlus(sanitizeText(value))
  }
  return shape.check(given)
}

/** In a URL a bare `+` is a space; before the zone of a time only a `+` can have been meant. */
const restoreTimezonePlus = (value: string): string =>
  value.replace(/^(\d{4}-\d\d-\d\dT[\d:.]{5,18}) (\d\d:?\d\d)$/, '$1+$2')

const sessionLengthMax = 256

/**
 * The session of a request: the header `X-Session-ID`, or the body's `session_id`, or none.
 *
 * @throws Refusal `invalid` when the header is longer than 256 characters or holds control characters,
 *   and when the two name different sessions.
 */
export function resolveSession(ctx: Context, inBody?: string | null): string | null {
  const header = headerText(ctx, 'x-session-id')
  if (header === null) return inBody || null
  const session = validateSession(header)
  if (!inBody || inBody === session) return session
  throw new Refusal(
    'invalid',
    'X-Session-ID and session_id name different sessions',
    'Send one of the two',
  )
}

/**
 * The embedding model of a request: the header `X-Embedding-Model`, else the body's `embeddings`, else the
 * model of the space that the caller's vault uses.
 */
export const embeddingModelForRequest = (
  ctx: Context,
  { keyRow }: Pick<Caller, 'keyRow'>,
  inBody?: string,
): string | undefined => requestedEmbeddingModel(ctx, inBody) ?? keyRow.embeddingModel ?? undefined

/** The embedding model that a request names, in the header or else in the body. */
export const requestedEmbeddingModel = (ctx: Context, inBody?: string): string | undefined =>
  headerText(ctx, 'x-embedding-model') ?? inBody

function validateSession(session: string): string {
  // oxlint-disable-next-line no-control-regex -- control characters are what is refused
  if (session.length <= sessionLengthMax && !/[\u0000-\u001F\u007F-\u009F]/.test(session))
    return session
  throw new Refusal(
    'invalid',
    `X-Session-ID must have at most ${sessionLengthMax} characters and no control characters`,
  )
}

/** Node reads header bytes as Latin-1; clients mean UTF-8 wherever that is what the bytes are. */
function headerText(ctx: Context, name: string): string | null {
  const raw = ctx.get(name)
  if (raw === '') return null
  const text = Buffer.from(raw, 'latin1').toString('utf8')
  return sanitizeText(text.includes('\uFFFD') ? raw : text)
}
