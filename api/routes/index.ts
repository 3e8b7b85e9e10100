import { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { RateLimiter } from '#api/edge/rate-limit.ts'
import { health } from '#api/routes/health.ts'
import { information } from '#api/routes/information.ts'
import { keys } from '#api/routes/keys.ts'
import { clear } from '#api/routes/memory/clear.ts'
import { checkout } from '#api/routes/memory/consolidate/checkout.ts'
import { commit } from '#api/routes/memory/consolidate/commit.ts'
import { deleteIds } from '#api/routes/memory/delete-ids.ts'
import { graft } from '#api/routes/memory/graft.ts'
import { ingest } from '#api/routes/memory/ingest.ts'
import { inspect } from '#api/routes/memory/inspect.ts'
import { list } from '#api/routes/memory/list.ts'
import { profile } from '#api/routes/memory/profile.ts'
import { sessions } from '#api/routes/memory/sessions.ts'
import { shared } from '#api/routes/memory/shared.ts'
import { prepare } from '#api/routes/memory/prepare.ts'
import { reembed } from '#api/routes/memory/reembed.ts'
import { search } from '#api/routes/memory/search.ts'
import { dateSearch } from '#api/routes/memory/date-search.ts'
import { edit } from '#api/routes/memory/edit.ts'
import { exportVault } from '#api/routes/memory/export.ts'
import { importVault } from '#api/routes/memory/import.ts'
import { upload } from '#api/routes/memory/upload.ts'
import { stats } from '#api/routes/memory/stats.ts'
import { transfer } from '#api/routes/memory/transfer.ts'
import { warmup } from '#api/routes/memory/warmup.ts'
import { adminKeys } from '#api/routes/account/admin-keys.ts'
import { erase } from '#api/routes/account/erase.ts'
import { accountEvents } from '#api/routes/account/events.ts'
import { exportAccount } from '#api/routes/account/export.ts'
import { policy } from '#api/routes/account/policy.ts'
import { providerKeys } from '#api/routes/account/provider-keys.ts'
import { usage } from '#api/routes/account/usage.ts'
import { webhookDeliveries } from '#api/routes/account/webhook-deliveries.ts'
import { webhooks } from '#api/routes/account/webhooks.ts'
import { chatCompletions } from '#api/routes/chat/completions.ts'
import { messages } from '#api/routes/messages.ts'
import { generateContent } from '#api/routes/models/generate-content.ts'
import { models } from '#api/routes/models.ts'
import { mcp } from '#api/routes/mcp.ts'
import { serviceOperations } from '#api/routes/operator/operations.ts'
import { tenants } from '#api/routes/operator/tenants.ts'
import { serviceUsage } from '#api/routes/operator/usage.ts'
import { operatorPages } from '#api/routes/operators.ts'
import { reference } from '#api/routes/reference.ts'
import { consolePages } from '#api/routes/console.ts'
import { operations } from '#api/routes/operations.ts'
import { responses } from '#api/routes/responses.ts'
import { traces } from '#api/routes/traces.ts'
import { passThrough } from '#api/routes/pass-through.ts'
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

/** Every route, in the order of the specification. */
const routes: readonly AddRoutes[] = [
  information,
  reference,
  consolePages,
  operatorPages,
  mcp,
  health,
  keys,
  prepare,
  ingest,
  search,
  list,
  profile,
  sessions,
  shared,
  edit,
  dateSearch,
  inspect,
  upload,
  exportVault,
  importVault,
  stats,
  warmup,
  checkout,
  commit,
  clear,
  deleteIds,
  transfer,
  graft,
  reembed,
  operations,
  chatCompletions,
  responses,
  messages,
  generateContent,
  traces,
  models,
  usage,
  passThrough,
  providerKeys,
  policy,
  webhooks,
  webhookDeliveries,
  accountEvents,
  exportAccount,
  erase,
  adminKeys,
  tenants,
  serviceUsage,
  serviceOperations,
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
