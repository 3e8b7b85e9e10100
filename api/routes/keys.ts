import type { Router } from '@koa/router'
import type { Context } from 'koa'
import { withActor, authenticateOwner } from '#api/edge/owner-auth.ts'
import {
  CreateKeyBody,
  ListKeysQuery,
  RevokeKeyQuery,
  RotateKeyBody,
} from '#api/contract/contract.ts'
import {
  storeResponseInTransaction,
  claimIdempotencyKey,
  operationId,
  replayStored,
} from '#api/edge/idempotency.ts'
import { presentAccountKey, presentMintedKey } from '#api/present/account-key.ts'
import {
  parseBody,
  authenticateRequest,
  memoryKeyFromRequest,
  parseQuery,
} from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/core/errors.ts'
import { requireMintPermission, requireNotRotated, type Caller } from '#shared/access/caller.ts'
import { hashKey } from '#shared/access/key.ts'
import { mintMemoryKey, rotateMemoryKey } from '#shared/access/mint.ts'
import { revokeAccountKey } from '#shared/accounts/revoke-key.ts'
import { listAccountKeys } from '#shared/access/account-keys.postgres.ts'
import { isRotatedKey } from '#shared/access/memory-keys.postgres.ts'

/** The Memory Keys of an account: made with a vault of their own or in place of another, listed, ended. */
export function keys(router: Router, backend: Backend): void {
  router.post('/v1/keys', async ctx => {
    const caller = await authenticateRequest(ctx, backend)
    requireMintPermission(caller)
    const body = await parseBody(ctx, CreateKeyBody)
    requireNotRotated(caller)
    const expiresAt = parseFutureDate(body.expires_at, backend.now())
    const { postgres } = withActor(backend, { actor: caller.maskedKey })
    ctx.body = await postgres.transaction(async tx => {
      const { account } = caller
      const { keyPepper } = backend.config
      const minted = await mintMemoryKey(tx, keyPepper, { account, name: body.name, expiresAt })
      const answer = presentMintedKey(minted, expiresAt)
      await storeResponseInTransaction(ctx, tx, { status: 201, body: answer })
      return answer
    })
    ctx.status = 201
  })

  router.post('/v1/keys/rotate', async ctx => {
    const caller = await authenticateForRotation(ctx, backend)
    requireMintPermission(caller)
    const body = await parseBody(ctx, RotateKeyBody)
    requireNotRotated(caller)
    const expiresAt = parseFutureDate(body.expires_at, backend.now())
    const { postgres } = withActor(backend, { actor: caller.maskedKey })
    ctx.body = await postgres.transaction(async tx => {
      const rotated = await rotateMemoryKey(tx, backend.config.keyPepper, {
        keyHash: caller.keyHash,
        name: body.name,
        expiresAt,
        graceSeconds: body.grace_seconds,
      })
      const answer = {
        ...presentMintedKey(rotated, expiresAt),
        previous_key: caller.maskedKey,
        previous_key_expires_at: rotated.previousExpiresAt.toISOString(),
      }
      // The old key may have ended by now: without this answer nothing would open the vault any more.
      await storeResponseInTransaction(ctx, tx, { status: 201, body: answer })
      return answer
    })
    ctx.status = 201
  })

  router.get('/v1/keys', async ctx => {
    const { account } = await authenticateOwner(ctx, backend)
    const { active, limit, cursor } = parseQuery(ctx, ListKeysQuery)
    const cursorScope = ['GET /v1/keys', account, active ?? null]
    const after =
      cursor === undefined ? undefined : (backend.cursors.read(cursor, cursorScope) as string)
    const filter = { active, after, limit: limit + 1 }
    await backend.usage.flush()
    const rows = await listAccountKeys(backend.postgres.query, account, filter)
    const page = rows.slice(0, limit)
    const last = rows.length > limit ? page.at(-1) : undefined
    const requester = (ctx.state as { caller?: Caller }).caller?.keyHash
    ctx.body = {
      items: page.map(row => presentAccountKey(row, requester)),
      has_more: last !== undefined,
      next_cursor: last ? backend.cursors.write(last.id, cursorScope) : null,
    }
  })

  router.delete('/v1/keys/:memoryKeyId', async ctx => {
    const owner = await authenticateOwner(ctx, backend)
    const { keyHash, keyRow } = (ctx.state as { caller: Pick<Caller, 'keyHash'> & Partial<Caller> })
      .caller
    if (keyRow) requireNotRotated({ keyRow })
    const { erase } = parseQuery(ctx, RevokeKeyQuery)
    const { memoryKeyId: id = '' } = ctx.params
    await claimIdempotencyKey(ctx, null)
    const operation = operationId(ctx)
    const requester = { account: owner.account, keyHash }
    await revokeAccountKey(withActor(backend, owner), requester, { id, erase, operation })
    ctx.body = { deleted: true, id, ...(erase && { operation_id: operation }) }
  })
}

/**
 * Who rotates. A key that has ended by it gets its answer again, for the same Idempotency-Key and as long
 * as that is kept, and nothing else.
 */
async function authenticateForRotation(ctx: Context, backend: Backend): Promise<Caller> {
  try {
    return await authenticateRequest(ctx, backend)
  } catch (error) {
    if (!(error instanceof Refusal) || error.reason !== 'unauthenticated') throw error
    const { key, mode } = memoryKeyFromRequest(ctx)
    const keyHash = hashKey(backend.config.keyPepper, key)
    if (mode === 'on' && (await isRotatedKey(backend.postgres.query, keyHash))) {
      await replayStored(ctx, { keyHash }, await parseBody(ctx, RotateKeyBody))
    }
    throw error
  }
}

function parseFutureDate(text: string | undefined, now: number): Date | null {
  if (text === undefined) return null
  const date = new Date(text)
  if (date.getTime() > now) return date
  throw new Refusal('invalid', 'expires_at must lie in the future')
}
