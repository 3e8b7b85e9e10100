import { fieldsOf, type Endpoint } from '#api/contract/document.ts'
import { readArguments } from '#api/mcp/read-arguments.ts'
import { wayHeader } from '#api/edge/log-recall.ts'
import { defaultsOf, type Tool } from '#api/mcp/tools.ts'
import { suggestName } from '#shared/core/describe-input.ts'
import { isUuid } from '#shared/core/ids.ts'

type Arguments = Record<string, unknown>

/** Performs a tool with the arguments of a model. */
export type ToolCaller = (tool: Tool, args: Arguments) => Promise<ToolResponse>

/**
 * Calls a tool as one request to the service, with the checks, limits and bills of every client. The latest
 * trace is looked up by a request before it.
 *
 * @param base of the service, such as `http://127.0.0.1:3000`
 * @param credential headers that carry the Memory Key
 */
export function createToolCaller(base: string, credential: Record<string, string>): ToolCaller {
  const headers = { ...credential, [wayHeader]: 'mcp' }
  const send = async (path: string, init: RequestInit): Promise<ToolResponse> => {
    const response = await fetch(`${base}${path}`, init)
    return { status: response.status, body: await response.json() }
  }
  return async (tool, given) => {
    const { name } = tool
    const completed = { ...defaultsOf(tool.inputSchema.properties), ...readArguments(tool, given) }
    if (name === 'store' && hasText(completed) === (completed['messages'] !== undefined)) {
      return { status: 400, body: notOneOfTwo }
    }
    const args = name === 'store' ? toMessages(completed) : completed
    if (name !== 'trace') return await sendTool(tool, args, { headers, send })
    const { trace_id: id, ...others } = args
    const found = await findTracePath(id, path => send(path, { headers }))
    if ('refusal' in found) return found.refusal
    const endpoint = { ...tool.endpoint, path: found.path }
    return await sendTool({ ...tool, endpoint }, others, { headers, send })
  }
}

/** Sends each argument where the endpoint of the tool takes it. */
async function sendTool(
  { endpoint, name }: Tool,
  args: Arguments,
  connection: {
    headers: Record<string, string>
    send: (path: string, init: RequestInit) => Promise<ToolResponse>
  },
): Promise<ToolResponse> {
  const { headers, send } = connection
  const { session_id: session, ...others } = args
  const byHeader = needsSessionHeader(endpoint) && typeof session === 'string'
  const queryFields = new Set(queryFieldNames(endpoint))
  // A tool call ends with its response, so `store` always waits.
  const query = new URLSearchParams(name === 'store' ? { wait: 'true' } : {})
  const body: Arguments = {}
  const bodyFields = new Set(endpoint.body ? fieldsOf(endpoint.body.schema).names : [])
  for (const [field, value] of Object.entries(byHeader ? others : args)) {
    if (queryFields.has(field)) query.set(field, toQueryText(value))
    else if (bodyFields.has(field)) body[field] = value
    else return { status: 400, body: unknownArgument(field, [...queryFields.union(bodyFields)]) }
  }
  const search = query.size > 0 ? `?${query.toString()}` : ''
  return send(`${endpoint.path}${search}`, {
    method: endpoint.method,
    headers: {
      ...headers,
      ...(endpoint.body && { 'content-type': 'application/json' }),
      ...(byHeader && { 'x-session-id': encodeHeader(session) }),
    },
    ...(endpoint.body && { body: JSON.stringify(body) }),
  })
}

/** Refuses an argument that no endpoint takes: a model can correct its call, a client could not. */
function unknownArgument(field: string, known: string[]) {
  const meant = suggestName(field, known)
  return {
    error: `unknown field ${field.slice(0, 64)}`,
    hint: meant ? `did you mean ${meant}?` : `known fields: ${known.join(', ')}`,
  }
}

const hasText = ({ text }: Arguments): boolean => text !== undefined

const notOneOfTwo = {
  error: 'store takes text or messages, one of the two',
  hint: 'Give what is to be remembered as {"text": "…"}',
}

/** The arguments of `store` as those of its endpoint. A model calls it: what it stores is not the person's own word. */
function toMessages({ text, ...others }: Arguments): Arguments {
  const metadata = { ...Object(others['metadata']), origin: 'program' }
  return {
    ...others,
    metadata,
    ...(text !== undefined && { messages: [{ role: 'user', content: text }] }),
  }
}

const toQueryText = (value: unknown): string =>
  typeof value === 'string' ? value : JSON.stringify(value)

/** A header carries bytes; the service reads them as UTF-8. */
const encodeHeader = (text: string): string => Buffer.from(text, 'utf8').toString('latin1')

/** The parameters that an endpoint takes from its query. */
const queryFieldNames = ({ query }: Endpoint): string[] => (query ? fieldsOf(query).names : [])

/** Whether the session goes into the header, because the body does not take it. */
function needsSessionHeader({ headers, body }: Endpoint): boolean {
  const inHeader = headers !== undefined && fieldsOf(headers).names.includes('x-session-id')
  return inHeader && !(body && fieldsOf(body.schema).names.includes('session_id'))
}

/** What the service answers to a tool. */
type ToolResponse = { status: number; body: unknown }

const noTrace: ToolResponse = {
  status: 404,
  body: {
    error: 'There is no trace',
    hint:
      'A call to a model through this service makes one when it reads memory; it is kept for the trace_days ' +
      'of GET /v1/account/policy',
  },
}

const noTraceId: ToolResponse = {
  status: 400,
  body: {
    error: 'trace_id is not a UUID',
    hint: 'Give the X-Memory-Trace of a call, or leave it out for the latest call',
  },
}

/**
 * The path of a trace.
 *
 * @param id as a model gave it; the latest trace of the vault when it is missing or empty
 * @param get requests a path of the service
 * @returns the refusal where no trace can be named.
 */
async function findTracePath(
  id: unknown,
  get: (path: string) => Promise<ToolResponse>,
): Promise<{ path: string } | { refusal: ToolResponse }> {
  if (id !== undefined && id !== '') {
    const isId = typeof id === 'string' && isUuid(id)
    return isId ? { path: `/v1/traces/${id}` } : { refusal: noTraceId }
  }
  const latest = await get('/v1/traces?way=proxy&limit=1')
  if (latest.status >= 400) return { refusal: latest }
  const { items } = latest.body as { items: { trace_id: string }[] }
  return items[0] ? { path: `/v1/traces/${items[0].trace_id}` } : { refusal: noTrace }
}
