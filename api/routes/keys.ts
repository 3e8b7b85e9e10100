import type { Router } from '@koa/router'
import { CreateKeyBody } from '#api/contract/contract.ts'
import { bodyOf, callerOf } from '#api/request.ts'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/errors.ts'
import { mintMemoryKey } from '#shared/key/mint.ts'

/** A new Memory Key, with a vault of its own, for the account of the key that asks. */
export function keys(router: Router, backend: Backend): void {
  router.post('/v1/keys', async ctx => {
    const caller = await callerOf(ctx, backend)
    if (caller.kind !== 'vault' || caller.mode !== 'on') {
      throw new Refusal(
        'forbidden',
        'This key may not create keys',
        'Use a Memory Key of the account without a suffix; member keys cannot create keys',
      )
    }
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
}

function futureDate(text: string | undefined, now: number): Date | null {
  if (text === undefined) return null
  const date = new Date(text)
  if (date.getTime() > now) return date
  throw new Refusal('invalid', 'expires_at must lie in the future')
}
