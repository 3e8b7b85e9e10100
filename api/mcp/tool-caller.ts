import { queryFieldNames, needsSessionHeader, type Tool } from '#api/mcp/tools.ts'

type ToolResponse = { status: number; body: unknown }

/** Performs a tool with a model's arguments. */
export type ToolCaller = (tool: Tool, args: Record<string, unknown>) => Promise<ToolResponse>

/**
 * Calls a tool as one request to the service, with the checks, limits and bills of every client.
 *
 * @param base of the service, such as `http://127.0.0.1:3000`
 * @param headers that carry the Memory Key
 */
export function createToolCaller(base: string, headers: Record<string, string>): ToolCaller {
  return async ({ endpoint, name }, args) => {
    const { session_id: session, ...others } = args
    const byHeader = needsSessionHeader(endpoint) && typeof session === 'string'
    const fields = byHeader ? others : args
    const queryFields = new Set(queryFieldNames(endpoint))
    const query = new URLSearchParams(name === 'store' ? { wait: 'true' } : {})
    const body: Record<string, unknown> = {}
    for (const [field, value] of Object.entries(fields)) {
      if (queryFields.has(field)) query.set(field, toQueryText(value))
      else body[field] = value
    }
    const search = query.size > 0 ? `?${query.toString()}` : ''
    const response = await fetch(`${base}${endpoint.path}${search}`, {
      method: endpoint.method,
      headers: {
        ...headers,
        ...(endpoint.body && { 'content-type': 'application/json' }),
        ...(byHeader && { 'x-session-id': encodeHeader(session) }),
      },
      ...(endpoint.body && { body: JSON.stringify(body) }),
    })
    return { status: response.status, body: await response.json() }
  }
}

const toQueryText = (value: unknown): string =>
  typeof value === 'string' ? value : JSON.stringify(value)

/** A header carries bytes; the service reads them as UTF-8. */
const encodeHeader = (text: string): string => Buffer.from(text, 'utf8').toString('latin1')
