import { randomUUID } from 'node:crypto'
import type { Endpoint } from '#api/contract/document.ts'
import { accountRequests } from '#scripts/prove/tenants/account-requests.ts'
import { note, question, type Asking, type RequestPlan } from '#scripts/prove/tenants/asking.ts'
import { modelRequests } from '#scripts/prove/tenants/model-requests.ts'
import { organizationRequests } from '#scripts/prove/tenants/organization-requests.ts'
import type { TenantKind } from '#scripts/prove/tenants/tenant.ts'
import { vaultRequests } from '#scripts/prove/tenants/vault-requests.ts'

/** One request to every operation of the contract, by its name. */
export const requestPlans: Record<string, RequestPlan> = {
  ...vaultRequests,
  ...modelRequests,
  ...accountRequests,
  ...organizationRequests,
}

/** Who usually sends it; now and then everybody else does. */
export function sendersOf({ path, auth, needs }: Endpoint): TenantKind[] {
  if (path.startsWith('/v1/operator/')) return ['operator']
  if (!auth.includes('memory-key')) return auth.includes('admin') ? ['admin'] : ['user']
  if (needs.includes('govern') || needs.includes('mint')) return ['owner']
  if (path.startsWith('/v1/shares')) return ['member']
  return ['user', 'user', 'user', 'member', 'owner']
}

const mcpTools: ((asking: Asking) => [name: string, args: object])[] = [
  asking => ['search', { query: question(asking) }],
  asking => ['prepare', { messages: [{ role: 'user', content: question(asking) }] }],
  () => ['date_search', { from: '2020-01-01' }],
  () => ['list', {}],
  () => ['profile', {}],
  () => ['sessions', {}],
  ({ id }) => ['inspect', { memory_id: id('memory') }],
  ({ id }) => ['trace', { trace_id: id('traceId') }],
  () => ['stats', {}],
  asking => ['store', { messages: [{ role: 'user', content: note(asking) }] }],
  asking => ['edit', { memory_id: asking.ownOrForeign('memory'), text: note(asking) }],
  ({ ownOrForeign }) => ['delete', { ids: [ownOrForeign('memory')] }],
  () => ['consolidate_checkout', { tier: 1 }],
]

/** A call of one of the tools of MCP. */
export function mcpCall(asking: Asking): object {
  const [name, args] = mcpTools[Math.floor(asking.random() * mcpTools.length)]!(asking)
  const params = { name, arguments: args }
  return { jsonrpc: '2.0', id: randomUUID(), method: 'tools/call', params }
}
