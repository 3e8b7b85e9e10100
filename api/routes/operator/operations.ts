import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { operator } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { presentPage } from '#api/present/page.ts'
import {
  listServiceOperations,
  type ServiceOperation,
} from '#shared/operations/operation-rows.postgres.ts'

/** Queued work of all accounts, for the operator. */
export function serviceOperations(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'GET /v1/operator/operations',
    auth: operator,
    async handle({ query }, ctx) {
      const { cursor, account_id: account, ...filters } = query
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
      const next = after === null ? null : backend.cursors.write(after, cursorScope)
      ctx.body = presentPage({ rows, next }, presentServiceOperation)
    },
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
