import { uptime } from 'node:process'
import type { Router } from '@koa/router'
import type { Context } from 'koa'
import type { HttpServer } from '#api/edge/server.ts'
import type { Backend } from '#shared/backend.ts'
import { refusal } from '#shared/core/refusal.ts'
import {
  createReadinessCheck,
  presentParts,
  presentReadiness,
} from '#shared/operations/readiness.ts'
import { contractDocument } from '#api/contract/document.ts'
import { apiVersion, version } from '#api/edge/version.ts'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { memoryKey } from '#api/edge/auth.ts'
import { operationWaitMs } from '#api/edge/operation-response.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { sendError } from '#api/edge/errors.ts'
import { presentPage } from '#api/present/page.ts'
import { presentOperation } from '#api/present/operation.ts'
import { isUuid } from '#shared/core/ids.ts'
import { requireStorePermission, isOwnerKey, type Caller } from '#shared/access/caller.ts'
import { findOperationCauses } from '#shared/storage/queue/held-jobs.ts'
import { cancelFileOfOperation } from '#shared/vault/bulk/files.postgres.ts'
import { cancelOperation } from '#shared/vault/delete/cancel.ts'
import {
  findVisibleOperation,
  listOperations,
  type OperationRow,
  type OperationScope,
} from '#shared/operations/operation-rows.postgres.ts'

/** The endpoints of `contract/operations.md`. */
export function operationRoutes(router: Router, backend: ApiBackend): void {
  // Liveness and readiness; open.
  router.get('/health', ctx => {
    ctx.body = { status: 'ok', timestamp: new Date().toISOString() }
  })

  router.get('/health/live', ctx => {
    ctx.body = { status: 'ok' }
  })

  const checkReadiness = createReadinessCheck(backend)
  router.get('/health/ready', async ctx => {
    const { faults, ...readiness } = await checkReadiness()
    ctx.set('Cache-Control', 'no-store')
    const faultsNow = isDraining(ctx) ? [...faults, 'this process is about to stop'] : faults
    if (faultsNow.length > 0) {
      const error = `Not ready: ${faultsNow.join('; ')}`
      sendError(ctx, 503, { reason: 'unavailable', error })
      ctx.set('Retry-After', '2')
      return void Object.assign(ctx.body as object, { parts: presentParts(readiness.parts) })
    }
    ctx.body = { ...presentReadiness(readiness), version, uptime_seconds: Math.round(uptime()) }
  })

  // The name and version of the service and its endpoints; open.
  const summaries = Object.values(contractDocument.endpoints).map(
    ({ method, path, summary, operation }) => [`${method} ${path}`, summary || operation] as const,
  )
  router.get('/', ctx => {
    const served = new Set(
      router.stack.flatMap(({ path, methods }) =>
        methods.map(method => `${method} ${String(path)}`),
      ),
    )
    const endpoints = Object.fromEntries(summaries.filter(([route]) => served.has(route)))
    ctx.body = { name: 'Memory Vault', version: apiVersion, status: 'ok', docs: '/docs', endpoints }
  })

  // Lists, reads and cancels queued work: of the vault, or for an owner key of the account.
  endpoint(router, backend, {
    route: 'GET /v1/operations',
    auth: memoryKey(),
    async handle({ caller, query }, ctx) {
      const scope = operationScope(caller)
      const { state, kind, limit, cursor } = query
      const { account, vault } = scope
      const cursorScope = ['GET /v1/operations', account, vault, state ?? null, kind ?? null]
      const before =
        cursor === undefined ? undefined : (backend.cursors.read(cursor, cursorScope) as string)
      const filter = { state, kind, before, limit }
      const { rows, after } = await listOperations(backend.postgres.query, scope, filter)
      const next = after === null ? null : backend.cursors.write(after, cursorScope)
      const causes = await causesOf(backend, rows)
      ctx.body = presentPage({ rows, next }, row => presentOperation(row, causes.get(row.id)))
    },
  })

  endpoint(router, backend, {
    route: 'GET /v1/operations/:id',
    auth: memoryKey(),
    async handle({ caller, params }, ctx) {
      const row = await requireVisibleOperation(backend, caller, params.id)
      ctx.body = presentOperation(row, (await causesOf(backend, [row])).get(row.id))
    },
  })

  endpoint(router, backend, {
    route: 'DELETE /v1/operations/:id',
    auth: memoryKey(requireStorePermission),
    async handle({ caller, params }, ctx) {
      const row = await requireVisibleOperation(backend, caller, params.id)
      if (row.state !== 'cancelled') await cancelOrRefuse(backend, caller, row.id)
      const after = await requireVisibleOperation(backend, caller, params.id)
      if (after.state !== 'cancelled' && isEnded(after))
        throw refusal('conflict', 'operationEnded', { id: row.id })
      ctx.status = after.state === 'cancelled' ? 200 : 202
      ctx.body = presentOperation(after)
    },
  })
}

const isDraining = ({ req }: Context): boolean =>
  (req.socket as { server?: Partial<HttpServer> }).server?.draining === true

/**
 * Cancels work that has not begun; a file that is being stored stops at its next chunk, which is awaited.
 *
 * @throws Refusal `conflict` for other work that has begun, and for work that has ended.
 */
async function cancelOrRefuse(
  backend: Pick<Backend, 'postgres' | 'queue' | 'operationWaiter'>,
  { account }: Caller,
  id: string,
): Promise<void> {
  if (await cancelOperation(backend, account, id)) return
  if (!(await cancelFileOfOperation(backend.postgres.query, account, id)))
    throw refusal('conflict', 'operationEnded', { id })
  await backend.operationWaiter.waitUntilSettled(account, id, operationWaitMs)
}

/** Causes why operations that have not ended wait, by their ids. */
const causesOf = (
  { postgres }: Pick<Backend, 'postgres'>,
  rows: readonly OperationRow[],
): Promise<Map<string, string>> => {
  const open = rows.filter(row => !isEnded(row)).map(({ id }) => id)
  return findOperationCauses(postgres.query, open)
}

const isEnded = ({ state }: OperationRow): boolean => state !== 'accepted' && state !== 'running'

/** An owner key sees the work of the whole account, every other key that of its vault. */
const operationScope = (caller: Caller): OperationScope => ({
  account: caller.account,
  vault: isOwnerKey(caller) ? null : caller.scope.vault,
})

async function requireVisibleOperation(
  { postgres }: Pick<Backend, 'postgres'>,
  caller: Caller,
  id: string,
): Promise<OperationRow> {
  const row = isUuid(id)
    ? await findVisibleOperation(postgres.query, operationScope(caller), id)
    : undefined
  if (row) return row
  throw refusal('missing', 'noSuchOperation')
}
