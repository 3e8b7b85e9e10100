import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { memoryKey, owner } from '#api/edge/auth.ts'
import { readJson } from '#api/edge/body.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { readMemoryKey } from '#api/edge/memory-key-auth.ts'
import { RequestIdempotency } from '#api/edge/request-idempotency.ts'
import type { Context } from 'koa'
import { RotateKeyBody } from '#api/contract/contract.ts'
import { presentPage } from '#api/present/page.ts'
import { presentAccountKey, presentMintedKey } from '#api/present/account-key.ts'
import { readPage } from '#shared/core/page.ts'
import { Refusal } from '#shared/core/errors.ts'
import { requireMintPermission, requireNotRotated } from '#shared/access/caller.ts'
import { hashKey } from '#shared/access/key.ts'
import { mintMemoryKey } from '#shared/access/mint.ts'
import { rotateMemoryKey } from '#shared/accounts/rotate-key.ts'
import { revokeAccountKey } from '#shared/accounts/revoke-key.ts'
import { listAccountKeys } from '#shared/access/account-keys.postgres.ts'
import { isRotatedKey } from '#shared/access/memory-keys.postgres.ts'

/** The Memory Keys of an account: minted with a vault of their own, rotated, listed, revoked. */
export function keys(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'POST /v1/keys',
    auth: memoryKey(requireMintPermission),
    async handle({ caller, body, claim }, ctx) {
      requireNotRotated(caller)
      const expiresAt = parseFutureDate(body.expires_at, backend.now())
      ctx.body = await backend.postgres.transaction(async tx => {
        const { account, maskedKey: actor } = caller
        const { keyPepper } = backend.config
        const minted = await mintMemoryKey(tx, keyPepper, {
          account,
          actor,
          name: body.name,
          expiresAt,
        })
        const answer = presentMintedKey(minted, expiresAt)
        await claim.storeInTransaction(tx, { status: 201, body: answer })
        return answer
      })
      ctx.status = 201
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

  endpoint(router, backend, {
    route: 'GET /v1/keys',
    auth: owner(),
    async handle({ account, keyHash, query }, ctx) {
      const { active, limit, cursor } = query
      const cursorScope = ['GET /v1/keys', account, active ?? null]
      await backend.usage.flush()
      const page = await readPage(
        backend.cursors,
        { limit, cursor, bound: cursorScope },
        (after: string | undefined, count) =>
          listAccountKeys(backend.postgres.query, account, { active, after, limit: count }),
        row => row.id,
      )
      ctx.body = presentPage(page, row => presentAccountKey(row, keyHash))
    },
  })

  endpoint(router, backend, {
    route: 'DELETE /v1/keys/:memoryKeyId',
    auth: owner(requireNotRotated),
    async handle({ account, actor, keyHash, params, query, claim }, ctx) {
      const { erase } = query
      const { memoryKeyId: id } = params
      const { operation } = claim
      const requester = { account, actor, keyHash }
      await revokeAccountKey(backend, requester, { id, erase, operation })
      ctx.body = { deleted: true, id, ...(erase && { operation_id: operation }) }
    },
  })
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
  await new RequestIdempotency(ctx, backend, keyHash).replayStored(body)
}

function parseFutureDate(text: string | undefined, now: number): Date | null {
  if (text === undefined) return null
  const date = new Date(text)
  if (date.getTime() > now) return date
  throw new Refusal('invalid', 'expires_at must lie in the future')
}
