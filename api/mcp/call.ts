import { queryFieldsOf, sessionByHeader, type Tool } from '#api/mcp/tools.ts'

type Answer = { status: number; body: unknown }

/** Performs a tool with a model's arguments. */
export type Call = (tool: Tool, args: Record<string, unknown>) => Promise<Answer>

/**
 * A tool is one request to the service: the same checks, limits and bills as for every other client,
 * and no second way in.
 *
 * @param base of the service, such as `http://127.0.0.1:3000`
 * @param headers that carry the Memory Key
 */
export function callOver(base: string, headers: Record<string, string>): Call {
  return async ({ endpoint, name }, args) => {
    const { session_id: session, ...others } = args
    const byHeader = sessionByHeader(endpoint) && typeof session === 'string'
    const fields = byHeader ? others : args
    const inQuery = new Set(queryFieldsOf(endpoint))
    const query = new URLSearchParams(name === 'store' ? { wait: 'true' } : {})
    const body: Record<string, unknown> = {}
    for (const [field, value] of Object.entries(fields)) {
      if (inQuery.has(field)) query.set(field, textOf(value))
      else body[field] = value
    }
    const search = query.size > 0 ? `?${query.toString()}` : ''
    const response = await fetch(`${base}${endpoint.path}${search}`, {
      method: endpoint.method,
      headers: {
        ...headers,
        ...(endpoint.body && { 'content-type': 'application/json' }),
        ...(byHeader && { 'x-session-id': encodedHeader(session) }),
      },
      ...(endpoint.body && { body: JSON.stringify(body) }),
    })
    return { status: response.status, body: await response.json() }
  }
}

const textOf = (value: unknown): string =>
  typeof value === 'string' ? value : JSON.stringify(value)

/** A header carries bytes; the service reads them as UTF-8. */
const encodedHeader = (text: string): string => Buffer.from(text, 'utf8').toString('latin1')
