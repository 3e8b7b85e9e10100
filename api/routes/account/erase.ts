import type { Router } from '@koa/router'
import { accountOf } from '#api/edge/account.ts'
import { EraseAccountBody } from '#api/contract/contract.ts'
import { operationOf } from '#api/edge/idempotency.ts'
import { bodyOf } from '#api/edge/request.ts'
import { eraseAccount } from '#shared/accounts/erase.ts'
import { receiptKeys } from '#shared/accounts/receipt.ts'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/core/errors.ts'
import { isUuid } from '#shared/core/ids.ts'
import { findErasure, type ErasureRow } from '#shared/accounts/receipts.postgres.ts'

/** The erasure of an account, and the receipts of erasures, which nobody needs a key for. */
export function erase(router: Router, backend: Backend): void {
  router.post('/v1/account/erase', async ctx => {
    const account = await accountOf(ctx, backend)
    const { email } = await bodyOf(ctx, EraseAccountBody)
    const { keyHash } = (ctx.state as { caller: { keyHash: Buffer } }).caller
    const asked = { id: operationOf(ctx), email }
    const erasure = await eraseAccount(backend, { account, keyHash }, asked)
    ctx.status = 202
    ctx.body = present(erasure)
  })

  router.get('/v1/receipts/key', ctx => {
    ctx.body = { keys: receiptKeys(backend.config.masterKeys) }
  })

  router.get('/v1/receipts/:receiptId', async ctx => {
    const { receiptId = '' } = ctx.params
    const erasure = isUuid(receiptId)
      ? await findErasure(backend.postgres.query, receiptId)
      : undefined
    if (!erasure)
      throw new Refusal('missing', 'No such receipt', 'Its id was answered to the erasure')
    ctx.body = present(erasure)
  })
}

const present = ({ id, requestedAt, finishedAt, receipt }: ErasureRow) => ({
  receipt_id: id,
  status: finishedAt ? 'erased' : 'erasing',
  receipt_path: `/v1/receipts/${id}`,
  requested_at: requestedAt.toISOString(),
  finished_at: finishedAt?.toISOString() ?? null,
  receipt,
})
