import type { Router } from '@koa/router'
import { requireOperatorAdmin } from '#api/edge/admin-auth.ts'
import { ListTenantsQuery } from '#api/contract/contract.ts'
import { parseQuery } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { listTenants, type Tenant } from '#shared/accounts/tenants.postgres.ts'

/** The accounts of the service, for whoever runs it. */
export function tenants(router: Router, backend: Backend): void {
  router.get('/v1/operator/tenants', async ctx => {
    await requireOperatorAdmin(ctx, backend)
    const { q, limit, cursor } = parseQuery(ctx, ListTenantsQuery)
    const cursorScope = ['GET /v1/operator/tenants', q ?? null]
    const before =
      cursor === undefined ? undefined : (backend.cursors.read(cursor, cursorScope) as string)
    const filter = { search: q, before, limit: limit + 1 }
    const rows = await listTenants(backend.postgres.query, filter)
    const page = rows.slice(0, limit)
    const last = rows.length > limit ? page.at(-1) : undefined
    ctx.body = {
      items: page.map(presentTenant),
      has_more: last !== undefined,
      next_cursor: last ? backend.cursors.write(last.id, cursorScope) : null,
    }
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
