import { createInterface } from 'node:readline'
import { readMessages, standardHeaders, type Message } from './http.ts'

type Bridge = {
  /** The MCP endpoint. */
  url: string
  key: string
  /** The id of one of the account's users, or empty. */
  user: string
  input: NodeJS.ReadableStream
  output: NodeJS.WritableStream
}

/**
 * Carries each message of a client to the MCP endpoint and its answers back, until the input ends and
 * all answers are written. A fault is the answer to the request it concerns.
 */
export async function runBridge({ url, key, user, input, output }: Bridge): Promise<void> {
  const running = new Map<unknown, AbortController>()
  const pending = new Set<Promise<void>>()
  let version: string | undefined

  const write = (message: unknown): void => void output.write(`${JSON.stringify(message)}\n`)

  async function carry(message: Message, signal: AbortSignal): Promise<void> {
    const headers = {
      authorization: `Bearer ${key}`,
      ...(user !== '' && { 'x-memory-user': toHeaderBytes(user) }),
      ...standardHeaders(message, version),
    }
    const response = await fetch(url, {
      method: 'POST',
      headers,
      body: JSON.stringify(message),
      signal,
    })
    for await (const answer of readMessages(response)) {
      if (message.method === 'initialize') version = answer.result?.protocolVersion
      write(answer)
    }
  }

  /** Cancelled requests get no answer. */
  async function handle(message: Message): Promise<void> {
    const controller = new AbortController()
    const { id } = message
    if (id !== undefined) running.set(id, controller)
    try {
      await carry(message, controller.signal)
    } catch (error) {
      const text = describe(error as Error, url)
      if (id === undefined) process.stderr.write(`${text}\n`)
      else if (!controller.signal.aborted) {
        write({ jsonrpc: '2.0', id, error: { code: -32_000, message: text } })
      }
    } finally {
      running.delete(id)
    }
  }

  for await (const line of createInterface({ input, crlfDelay: Infinity })) {
    if (line.trim() === '') continue
    const message = parse(line)
    if (!message) {
      write({ jsonrpc: '2.0', id: null, error: { code: -32_700, message: 'Not JSON' } })
      continue
    }
    if (message.method === 'notifications/cancelled') {
      running.get(message.params?.requestId)?.abort()
    }
    const done: Promise<void> = handle(message).finally(() => pending.delete(done))
    pending.add(done)
  }
  await Promise.all(pending)
}

/** `fetch` takes a byte for each character of a header; the service reads them as UTF-8. */
const toHeaderBytes = (text: string): string => Buffer.from(text, 'utf8').toString('latin1')

function parse(line: string): Message | undefined {
  try {
    return JSON.parse(line.replace(/^\uFEFF/, '')) as Message
  } catch {
    return undefined
  }
}

/** The reason of a failed `fetch` stands in its cause. */
function describe({ message, cause }: Error, url: string): string {
  const { message: reason, code } = (cause ?? {}) as { message?: string; code?: string }
  return cause === undefined ? message : `${url} cannot be reached: ${reason || code || message}`
}
