import type { IncomingHttpHeaders } from 'node:http'
import type { Context } from 'koa'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { openTicket } from '#api/edge/ticket.ts'
import {
  authenticateKeyHash,
  extractMemoryKey,
  isOwnerKey,
  mayNameUsers,
  toInspecting,
  toUserCaller,
  type Caller,
  type PresentedKey,
} from '#shared/access/caller.ts'
import { hashKey, looksLikeKey, maskKey, type KeyMode } from '#shared/access/key.ts'
import { Refusal } from '#shared/core/errors.ts'
import { refusal } from '#shared/core/refusal.ts'
import { parseExternalId, createNamedUser } from '#shared/access/user-keys.ts'
import { needsSignIn, type UserKeyRow } from '#shared/access/key-row.postgres.ts'

export type MemoryKeyBackend = Pick<ApiBackend, 'findKey' | 'expiry' | 'now'> & UserBackend

const defaultPurgeTimeoutMs = 5_000

/**
 * The caller of a request, by the Memory Key in `X-Memory-Key`, `Authorization: Bearer` or `x-api-key`, or by the
 * ticket of a tool call; with
 * `X-Memory-User` that of the user which an owner key names.
 * Applies the limits of the key, then removes what has expired in its vault; when that takes too long,
 * `keyRow.hasExpired` stays true.
 *
 * @throws Refusal `unauthenticated`; `limited` when the key makes too many requests; and as `openUser`.
 */
export async function authenticateCaller(
  ctx: Context,
  backend: MemoryKeyBackend,
  options: {
    /** In place of the header `X-Memory-Key`. */
    memoryKey?: string
    /** Longest the request waits for the removal of expired memories; 5 s, when missing. */
    purgeTimeoutMs?: number
  } = {},
): Promise<Caller> {
  const { memoryKey, purgeTimeoutMs = defaultPurgeTimeoutMs } = options
  const { findKey, config, rateLimiter } = backend
  const ticket = openTicket(ctx, backend.seal, backend.now())
  const presented = ticket ?? toPresentedKey(config, readMemoryKey(ctx, memoryKey))
  const user = ticket ? (ticket.externalId ?? undefined) : readUserHeader(ctx)
  const inspects = asksToInspect(ctx)
  const authenticateKey = async (): Promise<Caller> => {
    const caller = await authenticateKeyHash(findKey, presented, hash =>
      needsSignIn(backend.postgres.query, hash),
    )
    return inspects && isOwnerKey(caller) ? toInspecting(caller) : caller
  }
  if (user !== undefined) {
    const open = async () => openUser(ctx, backend, await authenticateKey(), user)
    return afterPurge(backend, open, purgeTimeoutMs)
  }
  rateLimiter.rejectIfLimited(ctx, presented.keyHash)
  const caller = await authenticateKey()
  await rateLimiter.consumeCallerQuota(ctx, caller)
  return afterPurge(backend, authenticateKey, purgeTimeoutMs, caller)
}

/** Posts that read. */
const readingPosts = /^\/v1\/memory\/(?:search|date-search|prepare|inspect)$/

/** Whether a request only inspects: it reads, and its header says that the rows are not used. */
const asksToInspect = (ctx: Context): boolean =>
  ctx.get('x-memory-inspection').trim().toLowerCase() === 'true' &&
  (ctx.method === 'GET' || readingPosts.test(ctx.path))

export const toPresentedKey = (
  { keyPepper }: Pick<ApiBackend['config'], 'keyPepper'>,
  { key, mode }: { key: string; mode: KeyMode },
): PresentedKey => ({ keyHash: hashKey(keyPepper, key), maskedKey: maskKey(key), mode })

/**
 * A caller from whose vault the expired memories are removed.
 *
 * @param authenticate finds the caller, as it is now
 * @param known the caller, where it was found already
 */
async function afterPurge(
  { expiry }: Pick<MemoryKeyBackend, 'expiry'>,
  authenticate: () => Promise<Caller>,
  purgeTimeoutMs = defaultPurgeTimeoutMs,
  known?: Caller,
): Promise<Caller> {
  const caller = known ?? (await authenticate())
  const { hasExpired } = caller.keyRow
  if (!hasExpired || !(await expiry.purgeExpired(caller.scope.vault, purgeTimeoutMs))) return caller
  const currentCaller = await authenticate()
  // Memories that have expired since this request began are left to the next one.
  return { ...currentCaller, keyRow: { ...currentCaller.keyRow, hasExpired: false } }
}

/**
 * The Memory Key of a request and what its suffix permits; the key is not looked up.
 *
 * @throws Refusal `unauthenticated` when there is none, or more than one.
 */
export function readMemoryKey(
  ctx: Context,
  memoryKey = ctx.get('x-memory-key').trim(),
): { key: string; mode: KeyMode } {
  requireOneAuthorization(ctx)
  const apiKey = ctx.get('x-api-key').trim() || undefined
  if (!memoryKey && !apiKey && looksLikeKey(ctx.get('authorization').trim())) {
    throw refusal('unauthenticated', 'schemeMissing')
  }
  return extractMemoryKey({
    memoryKey: memoryKey || undefined,
    authorization: parseBearer(ctx.get('authorization')),
    apiKey,
  })
}

/**
 * Node keeps the first of several `Authorization` headers and drops the others.
 *
 * @throws Refusal `unauthenticated` when there are several.
 */
export function requireOneAuthorization({ req }: Context): void {
  const { rawHeaders } = req
  const isAuthorization = (name: string, index: number): boolean =>
    index % 2 === 0 && name.length === 13 && name.toLowerCase() === 'authorization'
  if (rawHeaders.findIndex(isAuthorization) !== rawHeaders.findLastIndex(isAuthorization))
    throw new Refusal('unauthenticated', 'Authorization is given more than once')
}

/** The token of `Bearer …`; the scheme's case does not matter. */
export const parseBearer = (authorization: string): string | undefined =>
  /^bearer +(\S+)\s*$/i.exec(authorization)?.[1]

export type UserBackend = Pick<
  ApiBackend,
  'findUserKey' | 'postgres' | 'config' | 'seal' | 'rateLimiter'
>

const userHeader = 'x-memory-user'
/** Names the header that names the user, for programs that cannot rename theirs. */
const userFromHeader = 'x-memory-user-from'

/** Whether a request names a user, however it does. */
export const namesUser = ({ req }: Context): boolean =>
  req.headers[userHeader] !== undefined || req.headers[userFromHeader] !== undefined

/** The header that `X-Memory-User-From` names, in lower case: it is about a user, and no provider's. */
export const userHeaderName = (headers: IncomingHttpHeaders): string | undefined => {
  const named = headers[userFromHeader]
  return typeof named === 'string' ? named.trim().toLowerCase() : undefined
}

/**
 * The user that `X-Memory-User` names, or the header that `X-Memory-User-From` names; undefined without both.
 *
 * @throws Refusal `invalid` when it is missing, empty, given twice, no UTF-8, or no id, and when the two differ: the
 *   vault of the key must not stand in for that of a user.
 */
function readUserHeader(ctx: Context): string | undefined {
  const named = readUser(ctx, userHeader, 'X-Memory-User')
  const from = readOnce(ctx, userFromHeader, 'X-Memory-User-From')?.trim()
  if (from === undefined) return named
  if (!/^[\w-]{1,128}$/.test(from) || headersOfNoUser.has(from.toLowerCase()))
    throw refusal('invalid', 'noUserHeader')
  const user = readUser(ctx, from.toLowerCase(), from)
  if (user === undefined) throw refusal('invalid', 'userHeaderMissing', { from })
  if (named === undefined || named === user) return user
  throw new Refusal('invalid', `X-Memory-User and ${from} name different users`)
}

/**
 * The caller of a call whose body names a user as `X-Memory-User` does. The limits of the owner key have counted the
 * call by then.
 *
 * @throws Refusal `invalid` when header and body differ, and as `openUser`.
 */
export async function authenticateBodyUser(
  ctx: Context,
  backend: MemoryKeyBackend,
  caller: Caller,
  memoryUser: string,
): Promise<Caller> {
  const user = parseExternalId(memoryUser, 'memory_user')
  const inHeader = readUserHeader(ctx)
  if (inHeader === user) return caller
  if (inHeader !== undefined)
    throw new Refusal('invalid', 'X-Memory-User and memory_user name different users')
  const open = () => openUser(ctx, backend, caller, user)
  return afterPurge(backend, open, backend.config.recallTimeoutMs)
}

/** Headers that hold secrets, of which an id would be one, and those of every request and connection. */
const headersOfNoUser = new Set(
  (
    'accept accept-encoding authorization connection content-encoding content-length content-type ' +
    'cookie expect host keep-alive proxy-authorization te trailer transfer-encoding upgrade user-agent ' +
    'x-admin-key x-api-key x-dashboard-key x-goog-api-key x-memory-key x-provider-key'
  ).split(' '),
)

function readUser(ctx: Context, header: string, field: string): string | undefined {
  const value = readOnce(ctx, header, field)
  // Node reads header bytes as Latin-1.
  return value === undefined
    ? undefined
    : parseExternalId(Buffer.from(value, 'latin1').toString('utf8'), field)
}

function readOnce({ req }: Context, header: string, field: string): string | undefined {
  const values = req.headersDistinct[header] ?? []
  if (values.length > 1) throw new Refusal('invalid', `${field} is given more than once`)
  return values[0]
}

/**
 * The caller for a user of the account of an owner key. Its limits count the request; those of the owner key
 * count it when the user is unknown. An unknown user is created when the policy of the account allows it.
 *
 * @throws Refusal `forbidden` when the key does not act for its account, and for a user whose key has ended;
 *   `missing` for an unknown user that is not created; `limited`.
 */
export async function openUser(
  ctx: Context,
  backend: UserBackend,
  owner: Caller,
  externalId: string,
): Promise<Caller> {
  if (!mayNameUsers(owner)) {
    await countRequest(ctx, backend, owner)
    throw refusal('forbidden', 'keyNamesNoUsers')
  }
  const user = { account: owner.account, externalId }
  const found = await backend.findUserKey(user)
  // A look counts against the rate limits of who looks.
  if (!found || owner.inspects) await countRequest(ctx, backend, owner)
  if (!found && owner.inspects) throw unknownUser('Looking makes no users')
  const key = found ?? (await createUser(backend, owner, externalId))
  const caller = toUserCaller(owner, key)
  if (!owner.inspects) await countRequest(ctx, backend, caller)
  if (!key.isActive) throw refusal('forbidden', 'userKeyEnded', { id: key.id })
  return caller
}

/** Counts a request once, however often it is called. */
const countRequest = (ctx: Context, { rateLimiter }: UserBackend, caller: Caller): Promise<void> =>
  rateLimiter.consumeCallerQuota(ctx, caller)

async function createUser(
  backend: UserBackend,
  { mode, keyRow, account, maskedKey: actor }: Caller,
  externalId: string,
): Promise<UserKeyRow> {
  const user = { account, externalId }
  if (mode !== 'on') throw unknownUser(`A key with :${mode} makes no users`)
  // In its grace period a key may not create what would outlive it.
  if (keyRow.isRotated) throw unknownUser('A key that was rotated makes no users')
  const isCreated = await backend.postgres.transaction(tx =>
    createNamedUser(tx, backend, { ...user, actor }),
  )
  const key = isCreated ? await backend.findUserKey(user) : undefined
  if (!key) throw unknownUser('The policy of the account lets no request make users')
  return key
}

const unknownUser = (why: string): Refusal => refusal('missing', 'noUserHere', { why })
