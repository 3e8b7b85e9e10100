import { randomUUID } from 'node:crypto'
import { contractDocument, type Endpoint } from '#api/contract/document.ts'
import type { RequestOptions } from '#scripts/lab/prove/cluster.ts'
import { accountRequests } from '#scripts/lab/prove/requests/account-requests.ts'
import { fillPath, paramOf } from '#scripts/lab/prove/requests/id-choice.ts'
import {
  note,
  question,
  type RequestInput,
  type RequestPlan,
} from '#scripts/lab/prove/requests/request-plan.ts'
import { modelRequests } from '#scripts/lab/prove/requests/model-requests.ts'
import { organizationRequests } from '#scripts/lab/prove/requests/organization-requests.ts'
import type { TenantKind } from '#scripts/lab/prove/tenants/tenant.ts'
import { vaultRequests } from '#scripts/lab/prove/requests/vault-requests.ts'

/** One request to every operation of the contract, by its name. */
export const requestPlans: Record<string, RequestPlan> = {
  ...vaultRequests,
  ...modelRequests,
  ...accountRequests,
  ...organizationRequests,
}

/** The kinds of tenants that may send it; tenants of other kinds are refused. */
export function sendersOf({ path, auth, needs }: Endpoint): TenantKind[] {
  if (path.startsWith('/v1/operator/')) return ['operator']
  if (!auth.includes('memory-key')) return auth.includes('admin') ? ['admin'] : ['user']
  if (needs.includes('govern') || needs.includes('mint')) return ['owner']
  if (path.startsWith('/v1/shares')) return ['member']
  return ['user', 'user', 'user', 'member', 'owner']
}

const mcpTools: ((input: RequestInput) => [name: string, args: object])[] = [
  input => ['search', { query: question(input) }],
  input => ['prepare', { messages: [{ role: 'user', content: question(input) }] }],
  () => ['date_search', { from: '2020-01-01' }],
  () => ['list', {}],
  () => ['profile', {}],
  () => ['sessions', {}],
  ({ id }) => ['inspect', { memory_id: id('memory') }],
  ({ id }) => ['trace', { trace_id: id('traceId') }],
  () => ['stats', {}],
  input => ['store', { messages: [{ role: 'user', content: note(input) }] }],
  input => ['edit', { memory_id: input.id('memory', 'own'), text: note(input) }],
  ({ id }) => ['feedback', { ids: [id('memory', 'own')], feedback: 'right' }],
  ({ id }) => ['delete', { ids: [id('memory', 'own')] }],
  () => ['consolidate_checkout', { tier: 1 }],
  ({ id }) => ['consolidate_commit', { batch_id: id('batch', 'own'), entries: [reflection] }],
]

const reflection = { text: 'The harbour is old', importance: 5 }

/** A call of each tool of MCP, with its arguments. */
export const mcpCalls = (input: RequestInput): [name: string, args: object][] =>
  mcpTools.map(call => call(input))

/** A call of one of the tools of MCP. */
function mcpCall(input: RequestInput): object {
  const [name, args] = mcpTools[Math.floor(input.random() * mcpTools.length)]!(input)
  const params = { name, arguments: args }
  return { jsonrpc: '2.0', id: randomUUID(), method: 'tools/call', params }
}

const mcpPlan: RequestPlan = {
  body: mcpCall,
  headers: () => ({ accept: 'application/json, text/event-stream' }),
}

/** The route of MCP, which is no part of the contract. */
const mcp: Endpoint = { ...contractDocument.endpoints.ingest!, operation: 'mcp', path: '/mcp' }

/** Every route there is. */
export const routes: readonly Endpoint[] = [...Object.values(contractDocument.endpoints), mcp]

export const planOf = (endpoint: Endpoint): RequestPlan =>
  endpoint === mcp ? mcpPlan : requestPlans[endpoint.operation]!

/** A valid request to an endpoint. */
export function buildRequest(
  endpoint: Endpoint,
  input: RequestInput,
): { path: string; options: RequestOptions } {
  const plan = planOf(endpoint)
  const path = fillPath(endpoint, name => paramOf(endpoint, name, input.id))
  const query = new URLSearchParams(plan.query?.(input)).toString()
  const body = plan.body?.(input)
  return {
    path: query ? `${path}?${query}` : path,
    options: {
      method: endpoint.method,
      headers: { ...plan.headers?.(input) },
      ...(body !== undefined && { body }),
      ...(plan.type && { type: plan.type }),
    },
  }
}
