import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { operator } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { presentPage } from '#api/present/page.ts'
import { readPage } from '#shared/core/page.ts'
import { changeBilling } from '#shared/accounts/change-billing.ts'
import { listTenants, type Tenant } from '#shared/accounts/tenants.postgres.ts'
import { Refusal } from '#shared/core/errors.ts'
import { isUuid } from '#shared/core/ids.ts'

/** The accounts of the service, for the operator. */
export function tenants(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'GET /v1/operator/tenants',
    auth: operator,
    async handle({ query }, ctx) {
      const { q, limit, cursor } = query
      const cursorScope = ['GET /v1/operator/tenants', q ?? null]
      const page = await readPage(
        backend.cursors,
        { limit, cursor, bound: cursorScope },
        (before: string | undefined, count) =>
          listTenants(backend.postgres.query, { search: q, before, limit: count }),
        tenant => tenant.id,
      )
      ctx.body = presentPage(page, presentTenant)
    },
  })

  endpoint(router, backend, {
    route: 'PATCH /v1/operator/tenants/:accountId',
    auth: operator,
    async handle({ actor, params, body, claim }, ctx) {
      const account = params.accountId.toLowerCase()
      if (!isUuid(account)) throw new Refusal('missing', 'There is no such account')
      const change = {
        paymentMethod: body.payment_method,
        balance: body.balance,
        addBalance: body.add_balance,
      }
      ctx.body = await backend.postgres.transaction(async tx => {
        await changeBilling(tx, account, change, actor)
        const page = { search: account, before: undefined, limit: 1 }
        const tenant = presentTenant((await listTenants(tx.query, page))[0]!)
        await claim.storeInTransaction(tx, { status: 200, body: tenant })
        return tenant
      })
    },
  })
}

const presentTenant = ({ used, ...tenant }: Tenant) => ({
  account_id: tenant.id,
  email: tenant.email,
  created_at: tenant.createdAt.toISOString(),
  payment_method: tenant.hasPaymentMethod,
  balance: tenant.balance,
  keys: tenant.keys,
  member_keys: tenant.memberKeys,
  vaults: tenant.vaults,
  organizations: tenant.organizations,
  pending: tenant.pending,
  unconsolidated: tenant.unconsolidated,
  last_30_days: {
    requests: used.requests,
    input_tokens: used.inputTokens,
    output_tokens: used.outputTokens,
    memory_tokens: used.memoryTokens,
  },
  last_active: tenant.lastActive,
})
