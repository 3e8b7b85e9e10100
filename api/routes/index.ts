import { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { RateLimiter } from '#api/edge/rate-limit.ts'
import { account } from '#api/routes/account.ts'
import { bulk } from '#api/routes/bulk.ts'
import { consolidation } from '#api/routes/consolidation.ts'
import { copies } from '#api/routes/copies.ts'
import { keys } from '#api/routes/keys.ts'
import { mcp } from '#api/routes/mcp.ts'
import { memorySearch } from '#api/routes/memory-search.ts'
import { memory } from '#api/routes/memory.ts'
import { operationRoutes } from '#api/routes/operations.ts'
import { operatorRoutes } from '#api/routes/operator.ts'
import { pages } from '#api/routes/pages.ts'
import { passThrough } from '#api/routes/pass-through.ts'
import { proxy } from '#api/routes/proxy.ts'
import { safekeeping } from '#api/routes/safekeeping.ts'
import { shares } from '#api/routes/shares.ts'
import { traces } from '#api/routes/traces.ts'
import { webhooks } from '#api/routes/webhooks.ts'
import { orgs } from '#api/routes/orgs.ts'
import { passes } from '#api/routes/orgs/debug/passes.ts'
import { orgAudit } from '#api/routes/orgs/audit.ts'
import { exportOrg } from '#api/routes/orgs/export.ts'
import { instructions } from '#api/routes/orgs/instructions.ts'
import { pipeline } from '#api/routes/orgs/pipeline.ts'
import { memberKeys } from '#api/routes/orgs/keys.ts'
import { sharedMemories } from '#api/routes/orgs/memories.ts'
import { memoryAudit } from '#api/routes/orgs/memories/audit.ts'
import { memoryHistory } from '#api/routes/orgs/memories/history.ts'
import { reviewers } from '#api/routes/orgs/reviewers.ts'
import { review } from '#api/routes/orgs/memories/review.ts'
import { roleAssignments } from '#api/routes/orgs/role-assignments.ts'
import { roles } from '#api/routes/orgs/roles.ts'
import { tags } from '#api/routes/orgs/tags.ts'
import { users } from '#api/routes/orgs/users.ts'
import type { Backend } from '#shared/backend.ts'

type AddRoutes = (router: Router, backend: ApiBackend) => void

/** All routes; of two that match a path the first serves it. */
const routes: readonly AddRoutes[] = [
  operationRoutes,
  pages,
  mcp,
  keys,
  memorySearch,
  memory,
  shares,
  bulk,
  consolidation,
  copies,
  proxy,
  traces,
  account,
  passThrough,
  safekeeping,
  webhooks,
  operatorRoutes,
  orgs,
  memberKeys,
  roles,
  passes,
  users,
  roleAssignments,
  tags,
  instructions,
  sharedMemories,
  memoryAudit,
  memoryHistory,
  orgAudit,
  pipeline,
  exportOrg,
  review,
  reviewers,
]

export function createRouter(
  backend: Backend,
  rateLimiter: RateLimiter = new RateLimiter(backend, null),
): Router {
  const router = new Router()
  const apiBackend: ApiBackend = { ...backend, rateLimiter }
  for (const addRoutes of routes) addRoutes(router, apiBackend)
  return router
}
