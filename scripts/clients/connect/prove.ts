import type { Proof } from '#scripts/clients/connect/client.ts'

/**
 * Makes the call that a client will make, with what stands in its files.
 *
 * @returns a sentence on what was answered.
 * @throws Error with a sentence on what is wrong
 */
export async function prove({ kind, url, headers }: Proof): Promise<string> {
  const response = await send(kind, url, headers)
  const text = await response.text()
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${explain(text)}`)
  return kind === 'memory' ? describeMemory(url, text) : describeTools(url, text)
}

async function send(kind: Proof['kind'], url: string, headers: Record<string, string>) {
  const signal = AbortSignal.timeout(15_000)
  try {
    if (kind === 'memory') return await fetch(url, { headers, signal })
    return await fetch(url, {
      method: 'POST',
      headers: {
        ...headers,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
      signal,
    })
  } catch (error) {
    const { message, cause } = error as Error & { cause?: Error }
    throw new Error(`${url} cannot be reached: ${cause?.message || message}`, { cause: error })
  }
}

function describeMemory(url: string, text: string): string {
  const { memories } = parse(text) as { memories?: number }
  if (typeof memories !== 'number') throw new Error(`${url} is not a Memory Vault`)
  return `${url} answered: the vault of this key holds ${memories} memories`
}

/** An MCP server answers as JSON or as one event of a stream. */
function describeTools(url: string, text: string): string {
  const data = /^data: ?(\{.*)$/m.exec(text)?.[1] ?? text
  const { result } = parse(data) as { result?: { tools?: { name: string }[] } }
  if (!result?.tools)
    throw new Error(`${url} is not an MCP server with tools: ${text.slice(0, 200)}`)
  return `${url} answered: tools ${result.tools.map(({ name }) => name).join(', ')}`
}

function explain(text: string): string {
  const { error, hint } = parse(text) as { error?: unknown; hint?: string }
  if (typeof error !== 'string') return text.slice(0, 200)
  return hint === undefined ? error : `${error}. ${hint}`
}

function parse(text: string): object {
  try {
    return (JSON.parse(text) as object | null) ?? {}
  } catch {
    return {}
  }
}
