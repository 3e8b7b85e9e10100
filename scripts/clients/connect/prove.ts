import type { ClientRights } from '#api/client/programs/programs.ts'
import { networkFault } from '#scripts/service-connection.ts'

/** A call to the service with what stands in the client's files. */
export type Proof = {
  kind: ClientRights | 'tools'
  url: string
  headers: Record<string, string>
}

/**
 * Makes the proof that memory answers at a base URL, which may end in an API's version. A key for users opens no vault
 * without a user, so models are listed with it.
 */
export const memoryProof = (baseUrl: unknown, key: string, rights: ClientRights): Proof => ({
  kind: rights,
  url: `${String(baseUrl).replace(/\/v1(?:beta)?$/, '')}/v1/${rights === 'users' ? 'models' : 'memory/stats'}`,
  headers: { 'X-Memory-Key': key },
})

/** Makes the proof that an MCP server answers, from the names that clients give its address and headers, or its key. */
export function toolsProof(server: unknown): Proof {
  const { url, httpUrl, headers, http_headers, key } = (server ?? {}) as Record<string, unknown> & {
    key?: string
  }
  return {
    kind: 'tools',
    url: String(url ?? httpUrl),
    headers: (headers ?? http_headers ?? { Authorization: `Bearer ${key}` }) as Proof['headers'],
  }
}

/**
 * Makes the call that a client will make.
 *
 * @returns a sentence on what was answered.
 * @throws Error with a sentence on what is wrong
 */
export async function prove({ kind, url, headers }: Proof): Promise<string> {
  const listTools = {
    method: 'POST',
    headers: {
      ...headers,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
  }
  const response = await fetch(url, {
    ...(kind === 'tools' ? listTools : { headers }),
    signal: AbortSignal.timeout(15_000),
  }).catch((error: unknown) => {
    throw new Error(`${url} cannot be reached: ${networkFault(error)}`, { cause: error })
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${explain(text)}`)
  if (kind === 'users') return describeModels(url, text)
  return kind === 'memory' ? describeMemory(url, text) : describeTools(url, text)
}

function describeModels(url: string, text: string): string {
  const { providers } = parse(text) as { providers?: { models: unknown[] }[] }
  if (!providers) throw new Error(`${url} is not a Memory Vault`)
  const count = providers.reduce((sum, { models }) => sum + models.length, 0)
  return `${url} answered: ${count} models; each user has a vault of their own`
}

function describeMemory(url: string, text: string): string {
  const { memories } = parse(text) as { memories?: number }
  if (typeof memories !== 'number') throw new Error(`${url} is not a Memory Vault`)
  return `${url} answered: the vault of this key holds ${memories} memories`
}

/** Describes the tools of an MCP server, which answers as JSON or as one event of a stream. */
function describeTools(url: string, text: string): string {
  const data = /^data: ?(\{.*)$/m.exec(text)?.[1] ?? text
  const { result } = parse(data) as { result?: { tools?: { name: string }[] } }
  if (!result?.tools) {
    throw new Error(`${url} is not an MCP server with tools: ${text.slice(0, 200)}`)
  }
  return `${url} answered: tools ${result.tools.map(({ name }) => name).join(', ')}`
}

/** The error and hint of an answer. */
export function explain(text: string): string {
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
