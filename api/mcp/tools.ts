import { contractDocument, type Endpoint } from '#api/contract/document.ts'
import { schemaProperties, bundleDefinitions } from '#api/mcp/schemas.ts'

/** What a client learns about a tool before it lets a model use it. */
type ToolHints = { readOnlyHint: boolean; destructiveHint?: boolean; idempotentHint?: boolean }

export type Tool = {
  name: string
  title: string
  description: string
  inputSchema: Record<string, unknown> & { type: 'object' }
  annotations: ToolHints & { title: string; openWorldHint: false }
  endpoint: Endpoint
}

const readHints: ToolHints = { readOnlyHint: true }
const addHints: ToolHints = { readOnlyHint: false, destructiveHint: false }
const changeHints: ToolHints = { readOnlyHint: false, destructiveHint: true, idempotentHint: true }

/** Every tool, by the operation it performs. */
const toolTable: [name: string, operation: string, title: string, hints: ToolHints][] = [
  ['search', 'search', 'Search memory', readHints],
  ['prepare', 'prepare', 'What matters to this conversation', readHints],
  ['date_search', 'dateSearch', 'Search a span of time', readHints],
  ['list', 'list', 'List memories', readHints],
  ['sessions', 'listSessions', 'List sessions', readHints],
  ['inspect', 'inspect', 'Where a reflection comes from', readHints],
  ['stats', 'stats', 'How much is remembered', readHints],
  ['store', 'ingest', 'Remember an exchange', addHints],
  ['edit', 'edit', 'Correct a memory', changeHints],
  ['delete', 'deleteIds', 'Forget memories for good', changeHints],
  ['consolidate_checkout', 'checkout', 'Borrow memories to reflect on', addHints],
  ['consolidate_commit', 'commit', 'Store reflections', addHints],
]

/**
 * The tools of the vault. Their arguments are what the endpoint takes as body and query, by the schemas
 * of the contract, and the session.
 */
export const tools: Tool[] = toolTable.map(([name, operation, title, hints]) => {
  const endpoint = contractDocument.endpoints[operation]!
  return {
    name,
    title,
    description: endpoint.description,
    inputSchema: buildInputSchema(endpoint),
    annotations: { title, ...hints, openWorldHint: false },
    endpoint,
  }
})

/** The parameters that an endpoint takes from its query. */
export const queryFieldNames = ({ query }: Endpoint): string[] =>
  Object.keys(schemaProperties(query))

/** Whether the session goes into the header, because the body does not take it. */
export function needsSessionHeader({ headers, body }: Endpoint): boolean {
  return (
    'x-session-id' in schemaProperties(headers) && !('session_id' in schemaProperties(body?.schema))
  )
}

function buildInputSchema(endpoint: Endpoint): Tool['inputSchema'] {
  const properties: Record<string, unknown> = {
    ...schemaProperties(endpoint.body?.schema),
    ...schemaProperties(endpoint.query),
    ...(needsSessionHeader(endpoint) && { session_id: { $ref: '#/$defs/SessionId' } }),
  }
  // A tool call ends with its response, so `store` always waits.
  delete properties.wait
  const required = [endpoint.body?.schema, endpoint.query].flatMap(
    part => (part && bundleDefinitions(part).required) ?? [],
  )
  return bundleDefinitions({
    type: 'object',
    properties,
    ...(required.length > 0 && { required }),
    additionalProperties: false,
  })
}
