import type { Router } from '@koa/router'
import { requireOperatorAdmin } from '#api/edge/admin-auth.ts'
import { ListServiceOperationsQuery } from '#api/contract/contract.ts'
import { parseQuery } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import {
  listServiceOperations,
  type ServiceOperation,
} from '#shared/operations/service-operations.postgres.ts'

/** Queued work of all accounts, for whoever runs the service. */
export function serviceOperations(router: Router, backend: Backend): void {
  router.get('/v1/operator/operations', async ctx => {
    await requireOperatorAdmin(ctx, backend)
    const { cursor, account_id: account, ...filters } = parseQuery(ctx, ListServiceOperationsQuery)
    const { state, kind, limit } = filters
    const cursorScope = [
      'GET /v1/operator/operations',
      account ?? null,
      state ?? null,
      kind ?? null,
    ]
    const before =
      cursor === undefined ? undefined : (backend.cursors.read(cursor, cursorScope) as string)
    const filter = { state, kind, account, before, limit }
    const { rows, after } = await listServiceOperations(backend.postgres.query, filter)
    ctx.body = {
      items: rows.map(presentServiceOperation),
      has_more: after !== null,
      next_cursor: after === null ? null : backend.cursors.write(after, cursorScope),
    }
  })
}

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
})
