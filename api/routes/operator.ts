import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { operator } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { presentPage } from '#api/present/page.ts'
import { readPage } from '#shared/core/page.ts'
import { changeBilling } from '#shared/accounts/change-billing.ts'
import { listTenants, type Tenant } from '#shared/accounts/tenants.postgres.ts'
import { noSuchAccount } from '#shared/core/refusals.ts'
import { isUuid } from '#shared/core/ids.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'
import { serviceUsageByDay } from '#shared/billing/usage-sums.postgres.ts'
import {
  listServiceOperations,
  type ServiceOperation,
} from '#shared/operations/operation-rows.postgres.ts'

/** The endpoints of `contract/operator.md`. */
export function operatorRoutes(router: Router, backend: ApiBackend): void {
  // The accounts of the service.
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
    current: ({ params }) => readTenant(backend.postgres.query, params.accountId.toLowerCase()),
    async handle({ actor, params, body, claim }, ctx) {
      const account = params.accountId.toLowerCase()
      if (!isUuid(account)) throw noSuchAccount()
      const change = {
        paymentMethod: body.payment_method,
        balance: body.balance,
        addBalance: body.add_balance,
        usersMax: body.users_max,
      }
      ctx.body = await backend.postgres.transaction(async tx => {
        await changeBilling(tx, account, change, actor)
        const tenant = (await readTenant(tx.query, account))!
        await claim.storeInTransaction(tx, { status: 200, body: tenant })
        return tenant
      })
    },
  })

  // The usage of the whole service by day.
  endpoint(router, backend, {
    route: 'GET /v1/operator/usage',
    auth: operator,
    async handle({ query }, ctx) {
      const { days } = query
      const now = backend.now()
      const rows = await serviceUsageByDay(backend.postgres.query, days)
      ctx.body = {
        start: isoDay(now - (days - 1) * dayMs),
        end: isoDay(now),
        by_day: rows.map(row => ({
          day: row.day,
          accounts: row.accounts,
          requests: row.requests,
          input_tokens: row.inputTokens,
          output_tokens: row.outputTokens,
          memory_tokens: row.memoryTokens,
        })),
      }
    },
  })

  // Queued work of all accounts.
  endpoint(router, backend, {
    route: 'GET /v1/operator/operations',
    auth: operator,
    async handle({ query }, ctx) {
      const { cursor, account_id: account, state, kind, limit } = query
      const filters = [account ?? null, state ?? null, kind ?? null]
      const cursorScope = ['GET /v1/operator/operations', ...filters]
      const before =
        cursor === undefined ? undefined : (backend.cursors.read(cursor, cursorScope) as string)
      const filter = { state, kind, account, before, limit }
      const { rows, after } = await listServiceOperations(backend.postgres.query, filter)
      const next = after === null ? null : backend.cursors.write(after, cursorScope)
      ctx.body = presentPage({ rows, next }, presentServiceOperation)
    },
  })
}

async function readTenant(query: Query, account: string) {
  if (!isUuid(account)) return undefined
  const page = { search: account, before: undefined, limit: 1 }
  const [tenant] = await listTenants(query, page)
  return tenant && presentTenant(tenant)
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
  users: tenant.users,
  users_max: tenant.usersMax,
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

const dayMs = 24 * 3600 * 1000

const isoDay = (at: number): string => new Date(at).toISOString().slice(0, 10)

const presentServiceOperation = (row: ServiceOperation) => ({
  operation_id: row.id,
  account_id: row.account,
  email: row.email,
  kind: row.kind,
  state: row.state,
  progress: { done: row.done, total: row.total },
  created_at: row.createdAt.toISOString(),
  finished_at: row.finishedAt?.toISOString() ?? null,
  status: row.status,
  error: row.error,
})
