import { isUtf8 } from 'node:buffer'
import type { Context } from 'koa'
import { fieldsOf, type Effect, type Reference } from '#api/contract/document.ts'
import type { Caller } from '#shared/access/caller.ts'
import { Refusal } from '#shared/core/errors.ts'
import { refusal } from '#shared/core/refusal.ts'
import type { StoragePolicy } from '#shared/domain/account-policies.ts'
import type { InputNotes } from '#shared/core/lenient-input.ts'
import type { Shape } from '#shared/core/shape.ts'
import { sanitizeText } from '#shared/core/sanitize-text.ts'
import { maskKeys } from '#shared/access/key.ts'

/**
 * The checked query parameters that the shape lists, converted to their types. An empty value is absence, but where
 * the call changes something, and of switches of model calls, whose shapes alone are open (`isClosed`).
 *
 * @throws Refusal `invalid`, also for a listed parameter given twice.
 */
export function parseQuery<Query>(
  ctx: Context,
  shape: Shape<Query>,
  effect: Effect,
  notes?: InputNotes,
): Query {
  const { names, isClosed } = fieldsOf(shape.schema as Reference)
  const values = Object.create(null) as Record<string, string>
  for (const [name, value] of Object.entries(ctx.query)) {
    if (value === undefined || !names.includes(name)) continue
    if (Array.isArray(value))
      throw new Refusal('invalid', `${name} is given more than once in the query`)
    if (value === '' && isClosed && effect !== 'changes') continue
    values[name] = restoreTimezonePlus(sanitizeText(value))
  }
  return shape.check(values, notes)
}

/** In a URL a bare `+` is a space; before the zone of a time only a `+` can have been meant. */
const restoreTimezonePlus = (value: string): string =>
  value.replace(/^(\d{4}-\d\d-\d\dT[\d:.]{5,18}) (\d\d:?\d\d)$/, '$1+$2')

const sessionLengthMax = 256

/**
 * The session of a request: the header `X-Session-ID`, or `session_id` in the body or the query, or none.
 *
 * @param named what body and query name
 * @throws Refusal `invalid` when the header is longer than 256 characters or holds control characters,
 *   and when two of them name different sessions.
 */
export function resolveSession(
  ctx: Context,
  ...named: readonly (string | null | undefined)[]
): string | null {
  const header = headerText(ctx, 'x-session-id')
  const session = header === null ? null : validateSession(header)
  return agreedValue([session, ...named], 'X-Session-ID', 'session_id', 'sessions') ?? null
}

/**
 * The embedding model of a request: the header `X-Embedding-Model`, or `embeddings` in the body or the
 * query, else the model of the space that the caller's vault uses.
 *
 * @throws Refusal `invalid` when two of them name different models.
 */
export const embeddingModelForRequest = (
  ctx: Context,
  { keyRow }: Pick<Caller, 'keyRow'>,
  ...named: readonly (string | undefined)[]
): string | undefined =>
  requestedEmbeddingModel(ctx, ...named) ?? keyRow.embeddingModel ?? undefined

/** The embedding model that a request names, in its header, its body or its query. */
export const requestedEmbeddingModel = (
  ctx: Context,
  ...named: readonly (string | undefined)[]
): string | undefined => {
  const header = headerText(ctx, 'x-embedding-model')
  return agreedValue([header, ...named], 'X-Embedding-Model', 'embeddings', 'models')
}

/** The one value that is named, in however many places. @throws Refusal `invalid` for two of them. */
function agreedValue(
  named: readonly (string | null | undefined)[],
  header: string,
  field: string,
  what: string,
): string | undefined {
  const [value, ...others] = new Set(named.filter(name => name))
  if (others.length === 0) return value ?? undefined
  throw refusal('invalid', 'namesDiffer', { header, field, what })
}

/**
 * Whether the body or the query asks for a preview.
 *
 * @throws Refusal `invalid` when they differ: the work must not be done by mistake.
 */
export function resolveDryRun(inBody: boolean | undefined, inQuery: boolean | undefined): boolean {
  if (inBody === undefined || inQuery === undefined || inBody === inQuery)
    return inBody ?? inQuery ?? false
  throw refusal('invalid', 'dryRunDiffers')
}

function validateSession(session: string): string {
  // oxlint-disable-next-line no-control-regex -- control characters are what is refused
  if (session.length <= sessionLengthMax && !/[\u0000-\u001F\u007F-\u009F]/.test(session))
    return session
  throw refusal('invalid', 'badSessionId', { sessionLengthMax })
}

function headerText(ctx: Context, name: string): string | null {
  const raw = ctx.get(name)
  return raw === '' ? null : sanitizeText(decodeHeader(raw))
}

/** Node reads header bytes as Latin-1; clients mean UTF-8 wherever that is what the bytes are. */
export function decodeHeader(raw: string): string {
  const bytes = Buffer.from(raw, 'latin1')
  return isUtf8(bytes) ? bytes.toString('utf8') : raw
}

/**
 * The session of a request, and whether it has memories of its own. With `core` (`X-Memory-Sessions`, or the
 * query's `sessions`) the id names the conversation, and its memories live in the core. This is the default
 * for ids that a program sends of itself: they would divide a person's memory by the program's windows.
 *
 * @param coreSessions the policy of the account makes it the default for every id
 *
 * @throws Refusal `invalid` for another value, and what `resolveSession` throws.
 */
export function resolveSessionSpace(
  ctx: Context,
  { coreSessions }: Pick<StoragePolicy, 'coreSessions'>,
  {
    inBody,
    query = {},
  }: {
    inBody?: string | null | undefined
    query?: { session_id?: string | undefined; sessions?: string | undefined }
  } = {},
): {
  /** The session whose memories are used in addition to the core's; null: the core alone. */
  session: string | null
  /** The id that the client gave, which names the conversation. */
  conversation: string | null
} {
  const conversation = resolveSession(ctx, inBody, query.session_id)
  const asked = new Set([parseSessionsHeader(ctx), query.sessions])
  const isNamed = Boolean(inBody || query.session_id)
  const isCore =
    asked.has('core') ||
    (!asked.has('apart') && (coreSessions || (!isNamed && isProgramsOwnSession(ctx))))
  return { session: isCore ? null : conversation, conversation }
}

function parseSessionsHeader(ctx: Context): string | undefined {
  const value = ctx.get('X-Memory-Sessions').trim().toLowerCase()
  if (value === '') return undefined
  if (value === 'core' || value === 'apart') return value
  throw refusal('invalid', 'badMemorySessions')
}

/** opencode sends an id of each of its sessions to every provider, for its own purposes. */
const isProgramsOwnSession = (ctx: Context): boolean =>
  /^ses_\w+$/.test(ctx.get('X-Session-ID')) &&
  (/\bopencode\b/i.test(ctx.get('User-Agent')) || ctx.get('X-Session-Affinity') !== '')

/** The origin under which a client reached the service, behind a router that ends TLS too. */
export function publicOrigin(ctx: Context): string {
  const forwarded = ctx.get('x-forwarded-proto').toLowerCase()
  const protocol = /^https?$/.test(forwarded) ? forwarded : ctx.protocol
  return `${protocol}://${ctx.host}`
}

/**
 * Sets `X-Memory-Ignored-Fields` with the names of unknown fields and parameters, and `X-Memory-Clamped` with the
 * values that were reduced to their bounds.
 */
export function sendInputNotes(ctx: Context, { ignored, clamped }: InputNotes): void {
  if (ignored.size > 0) ctx.set('X-Memory-Ignored-Fields', listIgnored(ignored))
  if (clamped.size === 0) return
  const bounds = [...clamped].map(([name, bound]) => `${name}=${bound}`)
  ctx.set('X-Memory-Clamped', bounds.join(', '))
}

/** How many names the header has; of the others it has the number. */
const namedMax = 20

/** Unknown names as `X-Memory-Ignored-Fields` has them. */
export function listIgnored(ignored: ReadonlySet<string>): string {
  const named = [...ignored].slice(0, namedMax).map(toToken)
  const others = ignored.size - named.length
  return [...named, ...(others > 0 ? [`and-${others}-more`] : [])].join(', ')
}

/** A name as it may stand in a list in a header. */
const toToken = (name: string): string =>
  maskKeys(name).replaceAll(/[^\x21-\x7E]|[,%]/gu, character =>
    encodeURIComponent(character.toWellFormed()),
  )
