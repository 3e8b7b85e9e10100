import type { Router } from '@koa/router'
import type { Context } from 'koa'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { anyMemoryKey, memoryKey, owner, type Authenticate, type Identity } from '#api/edge/auth.ts'
import { readJson } from '#api/edge/body.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { readMemoryKey } from '#api/edge/memory-key-auth.ts'
import { RequestIdempotency } from '#api/edge/request-idempotency.ts'
import { RotateKeyBody } from '#api/contract/contract.ts'
import { presentBudgets, toMicros } from '#api/present/budget.ts'
import { presentPage } from '#api/present/page.ts'
import { parseFutureDate } from '#shared/core/dates.ts'
import { isUuid } from '#shared/core/ids.ts'
import { readPage } from '#shared/core/page.ts'
import { Refusal } from '#shared/core/errors.ts'
import { refusal } from '#shared/core/refusal.ts'
import {
  isOwnerKey,
  limitSubjectOf,
  requireMintPermission,
  requireNotRotated,
  requireOwner,
  type Caller,
} from '#shared/access/caller.ts'
import { countUsers } from '#shared/access/accounts.postgres.ts'
import { budgetsOf } from '#shared/access/budgets.ts'
import { hashKey } from '#shared/access/key.ts'
import { parseExternalId, ensureUserKey } from '#shared/access/user-keys.ts'
import {
  changeKeyBudget,
  mintClientKey,
  remintKey,
  revokeAccountKey,
  rotateMemoryKey,
} from '#shared/accounts/account-keys.ts'
import { eraseUser, findErasedUser } from '#shared/accounts/erase-user.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'
import { mintMemoryKey } from '#shared/access/mint.ts'
import {
  findAccountKey,
  isRotatedKey,
  listAccountKeys,
  listUsers,
  type AccountKey,
  type KeyLimits,
  type ListedUser,
} from '#shared/access/memory-keys.postgres.ts'
import { countVault, type VaultCounts } from '#shared/vault/read/lists/counts.mongo.ts'
import type { AccountUser, Budget, MemoryKey } from '#api/contract/generated/types.ts'

/** The Memory Keys of an account: minted with a vault of their own, rotated, listed, revoked. */
export function keys(router: Router, backend: ApiBackend): void {
  mintingRoutes(router, backend)
  accountKeyRoutes(router, backend)
}

/** Routes that make a key: for an empty vault, or in place of the key that asks. */
function mintingRoutes(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'POST /v1/keys',
    auth: memoryKey(requireMintPermission),
    async handle({ caller, body, claim }, ctx) {
      requireNotRotated(caller)
      const expiresAt = parseFutureDate(body.expires_at, backend.now())
      const { name, rights, external_id: externalId } = body
      if (externalId !== undefined || rights === 'users') requireOwner(caller)
      if (externalId !== undefined && rights !== undefined) throw refusal('invalid', 'rightsOfUser')
      const newKey = { name, expiresAt, externalId, rights }
      const answer = await backend.postgres.transaction(async tx => {
        const minted = await mintFor(tx, backend, caller, newKey)
        await claim.storeInTransaction(tx, minted)
        return minted
      })
      ctx.status = answer.status
      ctx.body = answer.body
    },
  })

  endpoint(router, backend, {
    route: 'POST /v1/keys/rotate',
    auth: rotatableKey,
    async handle({ caller, body, claim }, ctx) {
      requireNotRotated(caller)
      const expiresAt = parseFutureDate(body.expires_at, backend.now())
      ctx.body = await backend.postgres.transaction(async tx => {
        const rotated = await rotateMemoryKey(tx, backend, {
          actor: caller.maskedKey,
          keyHash: caller.keyHash,
          vault: caller.scope.vault,
          name: body.name,
          expiresAt,
          graceSeconds: body.grace_seconds,
        })
        const answer = {
          ...presentMintedKey(rotated, expiresAt),
          previous_key: caller.maskedKey,
          previous_key_expires_at: rotated.previousExpiresAt.toISOString(),
        }
        // The old key may have ended by now: if this response got lost, no key would open the vault.
        await claim.storeInTransaction(tx, { status: 201, body: answer })
        return answer
      })
      ctx.status = 201
    },
  })
}

/** Routes of an owner for the keys of the account. */
function accountKeyRoutes(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'POST /v1/keys/:memoryKeyId/remint',
    auth: owner(requireNotRotated),
    async handle({ account, actor, params, body, claim }, ctx) {
      const expiresAt = parseFutureDate(body.expires_at, backend.now())
      ctx.body = await backend.postgres.transaction(async tx => {
        const replacement = {
          account,
          actor,
          keyId: params.memoryKeyId,
          name: body.name,
          expiresAt,
        }
        const minted = await remintKey(tx, backend, replacement)
        const answer = {
          ...presentMintedKey(minted, expiresAt, minted.externalId),
          revoked_keys: minted.revoked,
        }
        await claim.storeInTransaction(tx, { status: 201, body: answer })
        return answer
      })
      ctx.status = 201
    },
  })

  endpoint(router, backend, {
    route: 'GET /v1/keys',
    auth: owner(),
    async handle({ account, keyHash, query }, ctx) {
      const { active, limit, cursor } = query
      const externalId = query.external_id && parseExternalId(query.external_id, 'external_id')
      const cursorScope = ['GET /v1/keys', account, active ?? null, externalId ?? null]
      await backend.usage.flush()
      const page = await readPage(
        backend.cursors,
        { limit, cursor, bound: cursorScope },
        (after: string | undefined, count) =>
          listAccountKeys(backend.postgres.query, account, {
            active,
            externalId,
            after,
            limit: count,
          }),
        row => row.id,
      )
      const budgets = await presentBudgets(backend, page.rows.map(toBudget))
      ctx.body = presentPage(page, (row, n) => presentAccountKey(row, keyHash, budgets[n]!))
    },
  })

  endpoint(router, backend, {
    route: 'PATCH /v1/keys/:memoryKeyId',
    auth: owner(requireNotRotated),
    current: request => readOneKey(request, request.params.memoryKeyId),
    async handle({ account, actor, keyHash, params, body }, ctx) {
      const { memoryKeyId: id } = params
      const micros = toMicros(body.monthly_dollars)
      const change = { requests: body.daily_requests, tokens: body.daily_tokens, micros }
      await backend.postgres.transaction(tx => changeKeyBudget(tx, { account, actor }, id, change))
      ctx.body = await readOneKey({ account, keyHash }, id)
    },
  })

  async function readOneKey({ account, keyHash }: Omit<Identity, 'actor'>, id: string) {
    if (!isUuid(id)) return undefined
    const one = { id, active: undefined, externalId: undefined, after: undefined, limit: 1 }
    const [row] = await listAccountKeys(backend.postgres.query, account, one)
    if (!row) return undefined
    const [budget] = await presentBudgets(backend, [toBudget(row)])
    return presentAccountKey(row, keyHash, budget!)
  }

  endpoint(router, backend, {
    route: 'GET /v1/account/users',
    auth: owner(),
    async handle({ account, query }, ctx) {
      const { q, limit, cursor, counts: counted } = query
      await backend.usage.flush()
      const [page, { users, usersMax }] = await Promise.all([
        readPage(
          backend.cursors,
          { limit, cursor, bound: ['GET /v1/account/users', account, q ?? null] },
          (after: string | undefined, count) =>
            listUsers(backend.postgres.query, account, { search: q, after, limit: count }),
          row => row.vault,
        ),
        countUsers(backend.postgres.query, account, backend.config.usersMax),
      ])
      const [budgets, counts] = await Promise.all([
        presentBudgets(backend, page.rows.map(toBudget)),
        counted && Promise.all(page.rows.map(row => countVault(backend.mongo, row, backend.now()))),
      ])
      const items = presentPage(page, (row, n) => ({
        ...presentUser(row, budgets[n]!),
        ...(counts && presentCounts(counts[n]!)),
      }))
      ctx.body = { users, users_max: usersMax, ...items }
    },
  })

  endpoint(router, backend, {
    route: 'DELETE /v1/account/users/:externalId',
    auth: owner(),
    async handle({ account, actor, keyHash, params, claim }, ctx) {
      const externalId = parseExternalId(params.externalId, 'The id in the path')
      const id = claim.operation
      const erasure = { account, actor, keyHash, externalId, id, now: backend.now() }
      const found = await findErasedUser(backend, erasure)
      ctx.body = await backend.postgres.transaction(async tx => {
        const { erased, receipt } = await eraseUser(tx, backend, erasure, found)
        const body = { deleted: true, id: externalId, operation_id: id, erased, receipt }
        await claim.storeInTransaction(tx, { status: 200, body })
        return body
      })
      backend.vaultIndexes.forget(found.vault)
    },
  })

  endpoint(router, backend, {
    route: 'DELETE /v1/keys/:memoryKeyId',
    auth: ownerOrClientKey,
    async handle({ account, actor, keyHash, isClientKey, params, query, claim }, ctx) {
      const { erase } = query
      const { memoryKeyId: id } = params
      const { operation } = claim
      const requester = { account, actor, keyHash, isClientKey }
      await revokeAccountKey(backend, requester, { id, erase, operation })
      ctx.body = { deleted: true, id, ...(erase && { operation_id: operation }) }
    },
  })
}

type NewKey = {
  name: string
  expiresAt: Date | null
  externalId: string | undefined
  rights: 'memory' | 'users' | undefined
}

/**
 * Mints a key with an empty vault; of a user whom the account has, their key; with rights, one for the vault of the key
 * that asks. @returns the answer.
 */
async function mintFor(
  tx: Transaction,
  backend: ApiBackend,
  caller: Caller,
  { name, expiresAt, externalId, rights }: NewKey,
) {
  const { account, maskedKey: actor } = caller
  if (externalId !== undefined) {
    const user = { account, actor, externalId: parseExternalId(externalId, 'external_id') }
    const key = await ensureUserKey(tx, backend, { ...user, name, expiresAt })
    const body = presentMintedKey(key, key.expiresAt, user.externalId)
    return { status: key.isNew ? 201 : 200, body }
  }
  // Keys that a user's key mints share its limits: else it could mint itself more.
  const limitedAs = isOwnerKey(caller) ? null : limitSubjectOf(caller)
  const newKey = { account, actor, name, expiresAt, limitedAs }
  if (rights) {
    const { vault } = caller.scope
    const client = await mintClientKey(tx, backend, { ...newKey, vault, rights })
    return { status: 201, body: { ...presentMintedKey(client, expiresAt), rights } }
  }
  const minted = await mintMemoryKey(tx, backend.config.keyPepper, newKey)
  return { status: 201, body: presentMintedKey(minted, expiresAt) }
}

/**
 * The key to rotate. A key that has ended by its rotation gets the response to that again, for the same
 * Idempotency-Key and as long as it is stored, and nothing else.
 */
const rotatableKey: ReturnType<typeof memoryKey> = async (ctx, backend) => {
  const identity = await memoryKey()(ctx, backend).catch(async (error: unknown) => {
    if (error instanceof Refusal && error.reason === 'unauthenticated')
      await replayRotation(ctx, backend)
    throw error
  })
  requireMintPermission(identity.caller)
  return identity
}

async function replayRotation(ctx: Context, backend: ApiBackend): Promise<void> {
  const { key, mode } = readMemoryKey(ctx)
  const keyHash = hashKey(backend.config.keyPepper, key)
  if (mode !== 'on' || !(await isRotatedKey(backend.postgres.query, keyHash))) return
  const body = RotateKeyBody.check(await readJson(ctx, 'small'))
  const rotation = { keyHash, route: 'POST /v1/keys/rotate' }
  await new RequestIdempotency(ctx, backend, rotation).replayStored(body)
}

/**
 * An owner, or a key that was made for a client and is to end itself: where its owner's key is not at hand, the client is
 * disconnected with it.
 */
const ownerOrClientKey: Authenticate<Identity & { isClientKey: boolean }> = async (
  ctx,
  backend,
) => {
  const identity = await owner(requireNotRotated)(ctx, backend).catch(async (error: unknown) => {
    if (!(error instanceof Refusal) || error.reason !== 'forbidden') throw error
    const client = await anyMemoryKey()(ctx, backend)
    const id = ctx.params.memoryKeyId ?? ''
    const { account, caller, keyHash } = client
    const isItsOwn = caller.keyRow.rights !== 'all' && ctx.query.erase !== 'true' && isUuid(id)
    const named = isItsOwn && (await findAccountKey(backend.postgres.query, account, id))
    if (named && named.hash.equals(keyHash)) return { ...client, isClientKey: true }
    throw error
  })
  return { isClientKey: false, ...identity }
}

/**
 * A key that was just made, whole.
 *
 * @param externalId of the user whose vault it opens
 */
const presentMintedKey = (
  { id, key, name, createdAt }: { id: string; key: string; name: string; createdAt: Date },
  expiresAt: Date | null,
  externalId?: string | null,
) => ({
  id,
  key,
  name,
  ...(typeof externalId === 'string' && { external_id: externalId }),
  created_at: createdAt.toISOString(),
  ...(expiresAt && { expires_at: expiresAt.toISOString() }),
})

/**
 * A key in a listing.
 *
 * @param requesterHash the hash of the credential that asks
 */
const presentAccountKey = (
  key: AccountKey,
  requesterHash: Buffer | undefined,
  budget: Budget | null,
): MemoryKey => ({
  id: key.id,
  masked_key: key.masked,
  name: key.name,
  rights: key.rights,
  external_id: key.externalId,
  active: key.active,
  current: requesterHash !== undefined && key.hash.equals(requesterHash),
  created_at: key.createdAt.toISOString(),
  expires_at: toIsoOrNull(key.expiresAt),
  revoked_at: toIsoOrNull(key.revokedAt),
  rotated_at: toIsoOrNull(key.rotatedAt),
  last_used_at: toIsoOrNull(key.lastUsedAt),
  budget,
})

const presentUser = (user: ListedUser, budget: Budget | null): AccountUser => ({
  external_id: user.externalId,
  key_id: user.keyId,
  name: user.name,
  active: user.active,
  created_at: user.createdAt.toISOString(),
  last_used_at: toIsoOrNull(user.lastUsedAt),
  budget,
})

const presentCounts = ({ memories, stored7Days, stored30Days }: VaultCounts) => ({
  memories,
  memories_7_days: stored7Days,
  memories_30_days: stored30Days,
})

const toBudget = (row: KeyLimits) => budgetsOf(row, row.subject)[0]

const toIsoOrNull = (date: Date | null): string | null => date?.toISOString() ?? null
