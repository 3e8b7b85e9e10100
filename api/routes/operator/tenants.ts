import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { operator } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { presentPage } from '#api/present/page.ts'
import { readPage } from '#shared/core/page.ts'
import { listTenants, type Tenant } from '#shared/accounts/tenants.postgres.ts'

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
