import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { Test } from 'tap'

type McpOptions = { query?: string; headers?: Record<string, string> }

/** The official MCP client on a running service, until the end of the test. */
export async function connectMcp(
  t: Test,
  base: string,
  key: string,
  { query = '', headers = {} }: McpOptions = {},
): Promise<Client> {
  const client = new Client({ name: 'test', version: '1.0.0' })
  const requestInit = { headers: { authorization: `Bearer ${key}`, ...headers } }
  const url = new URL(`/mcp${query}`, base)
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit }))
  t.teardown(() => client.close())
  return client
}
