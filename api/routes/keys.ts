import type { Router } from '@koa/router'
import { CreateKeyBody, RotateKeyBody } from '#api/contract/contract.ts'
import { bodyOf, callerOf } from '#api/request.ts'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/errors.ts'
import { requireOwner } from '#shared/key/caller.ts'
import { mintMemoryKey, rotateMemoryKey } from '#shared/key/mint.ts'

/** New Memory Keys: with a vault of their own, or in place of the key that asks. */
export function keys(router: Router, backend: Backend): void {
  router.post('/v1/keys', async ctx => {
    const caller = await callerOf(ctx, backend)
    requireOwner(caller)
    const body = await bodyOf(ctx, CreateKeyBody)
    const expiresAt = futureDate(body.expires_at, backend.now())
    const minted = await backend.postgres.transaction(tx =>
      mintMemoryKey(tx, backend.config.keyPepper, {
        account: caller.account,
        name: body.name,
        expiresAt,
      }),
    )
    ctx.status = 201
    ctx.body = {
      key: minted.key,
      name: minted.name,
      created_at: minted.createdAt.toISOString(),
      ...(expiresAt && { expires_at: expiresAt.toISOString() }),
    }
  })

  router.post('/v1/keys/rotate', async ctx => {
    const caller = await callerOf(ctx, backend)
    requireOwner(caller)
    const body = await bodyOf(ctx, RotateKeyBody)
    const expiresAt = futureDate(body.expires_at, backend.now())
    const rotated = await backend.postgres.transaction(tx =>
      rotateMemoryKey(tx, backend.config.keyPepper, {
        keyHash: caller.keyHash,
        name: body.name,
        expiresAt,
        graceSeconds: body.grace_seconds,
      }),
    )
    ctx.status = 201
    ctx.body = {
      key: rotated.key,
      name: rotated.name,
      created_at: rotated.createdAt.toISOString(),
      ...(expiresAt && { expires_at: expiresAt.toISOString() }),
      previous_key: caller.maskedKey,
      previous_key_expires_at: rotated.previousExpiresAt.toISOString(),
    }
  })
}

function futureDate(text: string | undefined, now: number): Date | null {
  if (text === undefined) return null
  const date = new Date(text)
  if (date.getTime() > now) return date
  throw new Refusal('invalid', 'expires_at must lie in the future')
}
