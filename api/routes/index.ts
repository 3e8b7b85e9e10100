import { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { RateLimiter } from '#api/edge/rate-limit.ts'
import { account } from '#api/routes/account.ts'
import { accountUsage } from '#api/routes/account/usage.ts'
import { applications } from '#api/routes/applications.ts'
import { bulk } from '#api/routes/bulk.ts'
import { consolidation } from '#api/routes/consolidation.ts'
import { copies } from '#api/routes/copies.ts'
import { keys } from '#api/routes/keys.ts'
import { login } from '#api/routes/login.ts'
import { mcp } from '#api/routes/mcp.ts'
import { memorySearch } from '#api/routes/memory-search.ts'
import { memory } from '#api/routes/memory.ts'
import { oauth } from '#api/routes/oauth.ts'
import { operationRoutes } from '#api/routes/operations.ts'
import { operatorRoutes } from '#api/routes/operator.ts'
import { queueRoutes } from '#api/routes/queues.ts'
import { pages } from '#api/routes/pages.ts'
import { passThrough } from '#api/routes/pass-through.ts'
import { proxy } from '#api/routes/proxy.ts'
import { safekeeping } from '#api/routes/safekeeping.ts'
import { scim } from '#api/routes/scim.ts'
import { shares } from '#api/routes/shares.ts'
import { traces } from '#api/routes/traces.ts'
import { webhooks } from '#api/routes/webhooks.ts'
import { orgs } from '#api/routes/orgs.ts'
import { directory } from '#api/routes/orgs/directory.ts'
import { orgTrail } from '#api/routes/orgs/trail.ts'
import { exportOrg } from '#api/routes/orgs/export.ts'
import { files } from '#api/routes/files.ts'
import { extraction } from '#api/routes/orgs/extraction.ts'
import { memberKeys } from '#api/routes/orgs/keys.ts'
import { sharedMemories } from '#api/routes/orgs/memories.ts'
import { memoryHistory } from '#api/routes/orgs/memories/history.ts'
import { memberSearch } from '#api/routes/orgs/memories/search.ts'
import { members } from '#api/routes/orgs/members.ts'
import { review } from '#api/routes/orgs/memories/review.ts'
import { rolesAndTags } from '#api/routes/orgs/roles-and-tags.ts'
import { trial } from '#api/routes/orgs/trial.ts'
import type { Backend } from '#shared/backend.ts'

/** All routes; of two that match a path the first serves it. */
const routes: readonly ((router: Router, backend: ApiBackend) => void)[] = [
  operationRoutes,
  login,
  pages,
  mcp,
  oauth,
  applications,
  keys,
  memorySearch,
  memory,
  shares,
  bulk,
  files,
  consolidation,
  copies,
  proxy,
  traces,
  account,
  accountUsage,
  passThrough,
  safekeeping,
  webhooks,
  operatorRoutes,
  queueRoutes,
  orgs,
  memberKeys,
  members,
  directory,
  rolesAndTags,
  sharedMemories,
  memberSearch,
  memoryHistory,
  orgTrail,
  extraction,
  trial,
  exportOrg,
  review,
  scim,
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
