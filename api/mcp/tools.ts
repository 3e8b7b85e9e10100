import { document, type Endpoint } from '#api/contract/document.ts'
import { fieldsOf, selfContained } from '#api/mcp/schemas.ts'

/** What a client is told about a tool before it lets a model use it. */
type Hints = { readOnlyHint: boolean; destructiveHint?: boolean; idempotentHint?: boolean }

export type Tool = {
  name: string
  title: string
  description: string
  inputSchema: Record<string, unknown> & { type: 'object' }
  annotations: Hints & { title: string; openWorldHint: false }
  endpoint: Endpoint
}

const reads: Hints = { readOnlyHint: true }
const adds: Hints = { readOnlyHint: false, destructiveHint: false }
const changes: Hints = { readOnlyHint: false, destructiveHint: true, idempotentHint: true }

/** Every tool, by the operation it performs. */
const table: [name: string, operation: string, title: string, hints: Hints][] = [
  ['search', 'search', 'Search memory', reads],
  ['prepare', 'prepare', 'What matters to this conversation', reads],
  ['date_search', 'dateSearch', 'Search a span of time', reads],
  ['list', 'list', 'List memories', reads],
  ['sessions', 'listSessions', 'List sessions', reads],
  ['inspect', 'inspect', 'Where a reflection comes from', reads],
  ['stats', 'stats', 'How much is remembered', reads],
  ['store', 'ingest', 'Remember an exchange', adds],
  ['edit', 'edit', 'Correct a memory', changes],
  ['delete', 'deleteIds', 'Forget memories for good', changes],
  ['consolidate_checkout', 'checkout', 'Borrow memories to reflect on', adds],
  ['consolidate_commit', 'commit', 'Store reflections', adds],
]

/**
 * The tools of the vault. Their schemas are the contract's own: what the endpoint takes as body or
 * query, and the session, are a tool's arguments.
 */
export const tools: Tool[] = table.map(([name, operation, title, hints]) => {
  const endpoint = document.endpoints[operation]!
  return {
    name,
    title,
    description: endpoint.description,
    inputSchema: inputOf(endpoint),
    annotations: { title, ...hints, openWorldHint: false },
    endpoint,
  }
})

/** The parameters that an endpoint takes from its query. */
export const queryFieldsOf = ({ query }: Endpoint): string[] => Object.keys(fieldsOf(query))

/** Whether the session has to go into the header, because the body does not take it. */
export function sessionByHeader({ headers, body }: Endpoint): boolean {
  return 'x-session-id' in fieldsOf(headers) && !('session_id' in fieldsOf(body?.schema))
}

function inputOf(endpoint: Endpoint): Tool['inputSchema'] {
  const properties: Record<string, unknown> = {
    ...fieldsOf(endpoint.body?.schema),
    ...fieldsOf(endpoint.query),
    ...(sessionByHeader(endpoint) && { session_id: { $ref: '#/$defs/SessionId' } }),
  }
  // A model's call is over when its answer comes: `store` waits by itself.
  delete properties.wait
  const required = [endpoint.body?.schema, endpoint.query].flatMap(
    part => (part && selfContained(part).required) ?? [],
  )
  return selfContained({
    type: 'object',
    properties,
    ...(required.length > 0 && { required }),
    additionalProperties: false,
  })
}
