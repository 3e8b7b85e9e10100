import type { Router } from '@koa/router'
import type { Context } from 'koa'
import { actedBy, ownerOf } from '#api/edge/account.ts'
import {
  CreateKeyBody,
  ListKeysQuery,
  RevokeKeyQuery,
  RotateKeyBody,
} from '#api/contract/contract.ts'
import { answeredIn, claimed, operationOf, replayFor } from '#api/edge/idempotency.ts'
import { presentAccountKey, presentMinted } from '#api/present/account-key.ts'
import { bodyOf, callerOf, presentedBy, queryOf } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/core/errors.ts'
import { requireMint, requireUnrotated, type Caller } from '#shared/access/caller.ts'
import { hashOfKey } from '#shared/access/key.ts'
import { mintMemoryKey, rotateMemoryKey } from '#shared/access/mint.ts'
import { revokeAccountKey } from '#shared/accounts/revoke-key.ts'
import { listAccountKeys } from '#shared/access/account-keys.postgres.ts'
import { isRotatedKey } from '#shared/access/keys.postgres.ts'

/** The Memory Keys of an account: made with a vault of their own or in place of another, listed, ended. */
export function keys(router: Router, backend: Backend): void {
  router.post('/v1/keys', async ctx => {
    const caller = await callerOf(ctx, backend)
    requireMint(caller)
    const body = await bodyOf(ctx, CreateKeyBody)
    requireUnrotated(caller)
    const expiresAt = futureDate(body.expires_at, backend.now())
    const { postgres } = actedBy(backend, { actor: caller.maskedKey })
    ctx.body = await postgres.transaction(async tx => {
      const { account } = caller
      const { keyPepper } = backend.config
      const minted = await mintMemoryKey(tx, keyPepper, { account, name: body.name, expiresAt })
      const answer = presentMinted(minted, expiresAt)
      await answeredIn(ctx, tx, { status: 201, body: answer })
      return answer
    })
    ctx.status = 201
  })

  router.post('/v1/keys/rotate', async ctx => {
    const caller = await rotatingCaller(ctx, backend)
    requireMint(caller)
    const body = await bodyOf(ctx, RotateKeyBody)
    requireUnrotated(caller)
    const expiresAt = futureDate(body.expires_at, backend.now())
    const { postgres } = actedBy(backend, { actor: caller.maskedKey })
    ctx.body = await postgres.transaction(async tx => {
      const rotated = await rotateMemoryKey(tx, backend.config.keyPepper, {
        keyHash: caller.keyHash,
        name: body.name,
        expiresAt,
        graceSeconds: body.grace_seconds,
      })
      const answer = {
        ...presentMinted(rotated, expiresAt),
        previous_key: caller.maskedKey,
        previous_key_expires_at: rotated.previousExpiresAt.toISOString(),
      }
      // The old key may have ended by now: without this answer nothing would open the vault any more.
      await answeredIn(ctx, tx, { status: 201, body: answer })
      return answer
    })
    ctx.status = 201
  })

  router.get('/v1/keys', async ctx => {
    const { account } = await ownerOf(ctx, backend)
    const { active, limit, cursor } = queryOf(ctx, ListKeysQuery)
    const bound = ['GET /v1/keys', account, active ?? null]
    const after = cursor === undefined ? undefined : (backend.cursors.read(cursor, bound) as string)
    const filter = { active, after, limit: limit + 1 }
    await backend.usage.flush()
    const rows = await listAccountKeys(backend.postgres.query, account, filter)
    const page = rows.slice(0, limit)
    const last = rows.length > limit ? page.at(-1) : undefined
    const asking = (ctx.state as { caller?: Caller }).caller?.keyHash
    ctx.body = {
      items: page.map(row => presentAccountKey(row, asking)),
      has_more: last !== undefined,
      next_cursor: last ? backend.cursors.write(last.id, bound) : null,
    }
  })

  router.delete('/v1/keys/:memoryKeyId', async ctx => {
    const owner = await ownerOf(ctx, backend)
    const { keyHash, row } = (ctx.state as { caller: Pick<Caller, 'keyHash'> & Partial<Caller> })
      .caller
    if (row) requireUnrotated({ row })
    const { erase } = queryOf(ctx, RevokeKeyQuery)
    const { memoryKeyId: id = '' } = ctx.params
    await claimed(ctx, null)
    const operation = operationOf(ctx)
    const asking = { account: owner.account, keyHash }
    await revokeAccountKey(actedBy(backend, owner), asking, { id, erase, operation })
    ctx.body = { deleted: true, id, ...(erase && { operation_id: operation }) }
  })
}

/**
 * Who rotates. A key that has ended by it gets its answer again, for the same Idempotency-Key and as long
 * as that is kept, and nothing else.
 */
async function rotatingCaller(ctx: Context, backend: Backend): Promise<Caller> {
  try {
    return await callerOf(ctx, backend)
  } catch (error) {
    if (!(error instanceof Refusal) || error.reason !== 'unauthenticated') throw error
    const { key, mode } = presentedBy(ctx)
    const keyHash = hashOfKey(backend.config.keyPepper, key)
    if (mode === 'on' && (await isRotatedKey(backend.postgres.query, keyHash))) {
      await replayFor(ctx, { keyHash }, await bodyOf(ctx, RotateKeyBody))
    }
    throw error
  }
}

function futureDate(text: string | undefined, now: number): Date | null {
  if (text === undefined) return null
  const date = new Date(text)
  if (date.getTime() > now) return date
  throw new Refusal('invalid', 'expires_at must lie in the future')
}
