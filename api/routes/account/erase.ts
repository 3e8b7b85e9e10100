import type { Router } from '@koa/router'
import { authenticateOwnerAccount } from '#api/edge/owner-auth.ts'
import { EraseAccountBody } from '#api/contract/contract.ts'
import { operationId } from '#api/edge/idempotency.ts'
import { parseBody } from '#api/edge/request.ts'
import { eraseAccount } from '#shared/accounts/erase-account.ts'
import { receiptKeys } from '#shared/accounts/erasure-receipt.ts'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/core/errors.ts'
import { isUuid } from '#shared/core/ids.ts'
import {
  findAccountErasure,
  type AccountErasureRow,
} from '#shared/accounts/account-erasures.postgres.ts'

/** The erasure of an account, and the receipts of erasures, which nobody needs a key for. */
export function erase(router: Router, backend: Backend): void {
  router.post('/v1/account/erase', async ctx => {
    const account = await authenticateOwnerAccount(ctx, backend)
    const { email } = await parseBody(ctx, EraseAccountBody)
    const { keyHash } = (ctx.state as { caller: { keyHash: Buffer } }).caller
    const erasureRequest = { id: operationId(ctx), email }
    const erasure = await eraseAccount(backend, { account, keyHash }, erasureRequest)
    ctx.status = 202
    ctx.body = presentErasure(erasure)
  })

  router.get('/v1/receipts/key', ctx => {
    ctx.body = { keys: receiptKeys(backend.config.masterKeys) }
  })

  router.get('/v1/receipts/:receiptId', async ctx => {
    const { receiptId = '' } = ctx.params
    const erasure = isUuid(receiptId)
      ? await findAccountErasure(backend.postgres.query, receiptId)
      : undefined
    if (!erasure)
      throw new Refusal('missing', 'No such receipt', 'Its id was answered to the erasure')
    ctx.body = presentErasure(erasure)
  })
}

const presentErasure = ({ id, requestedAt, finishedAt, receipt }: AccountErasureRow) => ({
  receipt_id: id,
  status: finishedAt ? 'erased' : 'erasing',
  receipt_path: `/v1/receipts/${id}`,
  requested_at: requestedAt.toISOString(),
  finished_at: finishedAt?.toISOString() ?? null,
  receipt,
})
