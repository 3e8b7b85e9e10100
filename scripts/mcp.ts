import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { createToolCaller } from '#api/mcp/tool-caller.ts'
import { createMcpServer } from '#api/mcp/server.ts'
import { formatUsageError, parseOptions } from '#scripts/command-line.ts'

const usage = `Usage: node scripts/mcp.ts [options]

Serves a vault over standard input and output, for MCP clients that start a program instead of opening
an address. Clients that support streamable HTTP do not need it: configure <url>/mcp and the key there.

  --url <url>       the service (default: MEMORY_VAULT_URL, else http://127.0.0.1:3000)
  --key <key>       the Memory Key, which may carry :read or :write (default: MEMORY_VAULT_KEY)
  --help            this text
`

function main(): number {
  const { url, key } = parseOptions(usage, {
    url: {
      type: 'string',
      default: process.env.MEMORY_VAULT_URL ?? 'http://127.0.0.1:3000',
    },
    key: { type: 'string', default: process.env.MEMORY_VAULT_KEY ?? '' },
  })
  const faults: string[] = []
  if (key === '') faults.push('No Memory Key: use --key or set MEMORY_VAULT_KEY')
  if (!URL.canParse(url)) faults.push(`${url} is not a valid URL`)
  if (faults.length > 0) {
    process.stderr.write(formatUsageError(faults, usage))
    return 2
  }
  const call = createToolCaller(url.replace(/\/+$/, ''), { authorization: `Bearer ${key}` })
  serveStdio(() => createMcpServer(call))
  return 0
}

process.exitCode = main()
