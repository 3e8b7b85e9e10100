/** The fields of a JSON-RPC message that the bridge reads. */
export type Message = {
  id?: string | number
  method?: string
  params?: {
    requestId?: unknown
    name?: unknown
    uri?: unknown
    taskId?: unknown
    _meta?: Record<string, unknown>
  }
  result?: { protocolVersion?: string }
}

const versionKey = 'io.modelcontextprotocol/protocolVersion'

/** The parameter that names the subject of a method. */
const subjects: Record<string, 'name' | 'uri' | 'taskId'> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId',
}

/**
 * The headers of a message in streamable HTTP: the version that was agreed on. A message that names its version,
 * as newer revisions do, also has its method and subject in headers.
 *
 * @param agreed the version of the answer to `initialize`
 */
export function standardHeaders(
  { method = '', params }: Message,
  agreed: string | undefined,
): Record<string, string> {
  const named = params?._meta?.[versionKey]
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
  }
  if (typeof named !== 'string') {
    return { ...headers, ...(agreed !== undefined && { 'mcp-protocol-version': agreed }) }
  }
  const subject = subjects[method]
  const about = subject && params?.[subject]
  return {
    ...headers,
    'mcp-protocol-version': named,
    'mcp-method': method,
    ...(typeof about === 'string' && { 'mcp-name': encode(about) }),
  }
}

/** A header value of other than visible ASCII is written in base64. */
const encode = (value: string): string =>
  /^(?! )[ -~]*(?<! )$/.test(value) && !value.startsWith('=?base64?')
    ? value
    : `=?base64?${Buffer.from(value, 'utf8').toString('base64')}?=`

/**
 * The messages of an answer: one of JSON, or the events of a stream as they come.
 *
 * @throws Error with the service's sentence for an answer that is none of MCP
 */
export async function* readMessages(response: Response): AsyncGenerator<Message> {
  const type = response.headers.get('content-type') ?? ''
  if (response.ok && type.startsWith('text/event-stream')) {
    yield* readEvents(response)
    return
  }
  const text = await response.text()
  if (response.ok && text === '') return
  const answer = parse(text)
  if (answer && 'jsonrpc' in answer) yield answer as Message
  else throw new Error(describeRefusal(response.status, answer))
}

async function* readEvents({ body }: Response): AsyncGenerator<Message> {
  const decoder = new TextDecoder()
  let rest = ''
  let data: string[] = []
  for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split(/\r?\n/)
    rest = lines.pop()!
    for (const line of lines) {
      if (line.startsWith('data:')) data.push(line.slice(5))
      if (line !== '') continue
      const message = parse(data.join('\n'))
      data = []
      if (message) yield message
    }
  }
}

function parse(text: string): object | undefined {
  try {
    const value = JSON.parse(text) as unknown
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

function describeRefusal(status: number, answer: object | undefined): string {
  const { error, hint } = (answer ?? {}) as { error?: unknown; hint?: unknown }
  if (typeof error !== 'string') return `The service answered ${status}`
  return typeof hint === 'string' ? `${error}. ${hint}` : error
}
