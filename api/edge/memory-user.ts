import type { Context } from 'koa'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { parseExternalId } from '#shared/access/external-id.ts'
import { limitSubjectOf, mayNameUsers, toUserCaller, type Caller } from '#shared/access/caller.ts'
import { createNamedUser, inactiveUserRefusal } from '#shared/access/user-keys.ts'
import type { UserKeyRow } from '#shared/access/key-row.postgres.ts'
import { Refusal } from '#shared/core/errors.ts'

export type UserBackend = Pick<
  ApiBackend,
  'findUserKey' | 'postgres' | 'config' | 'seal' | 'rateLimiter'
>

/** Whether a request names a user, however it does. */
export const namesUser = ({ req }: Context): boolean => req.headers['x-memory-user'] !== undefined

/**
 * The user that `X-Memory-User` names; undefined without the header.
 *
 * @throws Refusal `invalid` when it is empty, given twice, no UTF-8, or no id: the vault of the key must not
 *   stand in for that of a user.
 */
export function readUserHeader(ctx: Context): string | undefined {
  const values = ctx.req.headersDistinct['x-memory-user'] ?? []
  if (values.length > 1) throw new Refusal('invalid', 'X-Memory-User is given more than once')
  const [value] = values
  if (value === undefined) return undefined
  // Node reads header bytes as Latin-1.
  const text = Buffer.from(value, 'latin1').toString('utf8')
  return parseExternalId(text, 'X-Memory-User')
}

/**
 * The caller for a user of the account of an owner key. Its limits count the request; those of the owner key
 * count it when the user is unknown. An unknown user is created when the policy of the account says so.
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
    throw new Refusal(
      'forbidden',
      'This key does not name users',
      'X-Memory-User works with the key that was made with the account; every other key opens its own vault, without the header',
    )
  }
  const user = { account: owner.account, externalId }
  const found = await backend.findUserKey(user)
  if (!found) await countRequest(ctx, backend, owner)
  const key = found ?? (await createUser(backend, owner, externalId))
  const caller = toUserCaller(owner, key)
  await countRequest(ctx, backend, caller)
  if (!key.isActive) throw inactiveUserRefusal('forbidden', key.id)
  return caller
}

/** Counts a request once, however often it is called. */
const countRequest = (ctx: Context, { rateLimiter }: UserBackend, caller: Caller): Promise<void> =>
  rateLimiter.consumeKeyQuota(ctx, limitSubjectOf(caller), caller.account)

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

const unknownUser = (why: string): Refusal =>
  new Refusal(
    'missing',
    'This account has no user of that id',
    `${why}; POST /v1/keys with external_id makes one`,
  )
