import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { owner } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { eraseAccount } from '#shared/accounts/erase-account.ts'
import { receiptKeys } from '#shared/accounts/erasure-receipt.ts'
import { Refusal } from '#shared/core/errors.ts'
import { isUuid } from '#shared/core/ids.ts'
import {
  findAccountErasure,
  type AccountErasureRow,
} from '#shared/accounts/account-erasures.postgres.ts'

/** The erasure of an account, and the receipts of erasures, which are open. */
export function erase(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'POST /v1/account/erase',
    auth: owner(),
    async handle({ account, keyHash, body, claim }, ctx) {
      const { email } = body
      const erasureRequest = { id: claim.operation, email }
      const erasure = await eraseAccount(backend, { account, keyHash }, erasureRequest)
      ctx.status = 202
      ctx.body = presentErasure(erasure)
    },
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
