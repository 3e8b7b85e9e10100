import type { Context } from 'koa'
import { readJson, type bodyLimits } from '#api/edge/body.ts'
import { claimIdempotencyKey } from '#api/edge/idempotency.ts'
import { consumeKeyQuota, rejectIfLimited } from '#api/edge/rate-limit.ts'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/core/errors.ts'
import { authenticateMemoryKey, extractMemoryKey, type Caller } from '#shared/access/caller.ts'
import { hashKey, type KeyMode } from '#shared/access/key.ts'
import type { Shape } from '#shared/core/shape.ts'
import { sanitizeText } from '#shared/core/sanitize-text.ts'

/** Who asks waits so long for the removal of what is over; then nothing can be read for now. */
const purgeTimeoutMs = 5_000

/**
 * Who is asking, by the Memory Key in `X-Memory-Key`, `Authorization: Bearer` or `x-api-key`. What is over
 * in its vault is removed before this returns, or the caller's row says that it was not to be done.
 *
 * @throws Refusal `unauthenticated`, or `limited` when the key makes too many requests.
 */
export async function authenticateRequest(
  ctx: Context,
  { findKey, config, expiry }: Pick<Backend, 'findKey' | 'config' | 'expiry'>,
  withinMs = purgeTimeoutMs,
): Promise<Caller> {
  const key = memoryKeyFromRequest(ctx)
  rejectIfLimited(ctx, hashKey(config.keyPepper, key.key))
  const caller = await authenticateMemoryKey(findKey, config.keyPepper, key)
  await consumeKeyQuota(ctx, caller.keyHash, caller.account)
  if (caller.keyRow.hasExpired && (await expiry.purgeExpired(caller.scope.vault, withinMs))) {
    const currentCaller = await authenticateMemoryKey(findKey, config.keyPepper, key)
    // What has come to its end since this request began is the next one's affair.
    return (ctx.state.caller = {
      ...currentCaller,
      keyRow: { ...currentCaller.keyRow, hasExpired: false },
    })
  }
  ctx.state.caller = caller
  return caller
}

/**
 * The Memory Key of a request and what its suffix lets it do; nobody has looked it up.
 *
 * @throws Refusal `unauthenticated` when there is none, or more than one.
 */
export function memoryKeyFromRequest(ctx: Context): { key: string; mode: KeyMode } {
  // Node keeps the first of several and drops the rest unseen.
  if ((ctx.req.headersDistinct.authorization?.length ?? 0) > 1) {
    throw new Refusal('unauthenticated', 'Authorization is given more than once')
  }
  return extractMemoryKey({
    memoryKey: ctx.get('x-memory-key').trim() || undefined,
    authorization: bearerToken(ctx),
    apiKey: ctx.get('x-api-key').trim() || undefined,
  })
}

/** The token of `Authorization: Bearer …`; the scheme's case does not matter. */
export const bearerToken = (ctx: Context): string | undefined =>
  /^bearer +(\S+)\s*$/i.exec(ctx.get('authorization'))?.[1]

/**
 * The checked body. A request with an Idempotency-Key claims it here, so call `callerOf` first.
 *
 * @throws Refusal `invalid` naming the field and the bound, and what `readJson` throws.
 */
export async function parseBody<Body>(
  ctx: Context,
  shape: Shape<Body>,
  size: keyof typeof bodyLimits = 'small',
): Promise<Body> {
  const body = shape.check(await readJson(ctx, size))
  await claimIdempotencyKey(ctx, body)
  return body
}

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

/** In an address a bare `+` is a space; where a time ends in a zone only the `+` can have been meant. */
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
 * one whose space the caller's vault stands in. Call `callerOf` first; an admin has no vault.
 */
export const embeddingModelForRequest = (ctx: Context, inBody?: string): string | undefined =>
  requestedEmbeddingModel(ctx, inBody) ??
  (ctx.state.caller as Partial<Caller> | undefined)?.keyRow?.embeddingModel ??
  undefined

/** The embedding model that a request names itself, in the header or else in the body. */
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
