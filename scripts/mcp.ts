import { parseArgs } from 'node:util'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { callOver } from '#api/mcp/call.ts'
import { vaultServer } from '#api/mcp/server.ts'

const usage = `Usage: node scripts/mcp.ts [options]

Serves a vault over standard input and output, for MCP clients that start a program instead of opening
an address. Clients that speak streamable HTTP need no bridge: give them <url>/mcp and the key.

  --url <address>   the service (default: MEMORY_VAULT_URL, else http://127.0.0.1:3000)
  --key <key>       the Memory Key, which may carry :read or :write (default: MEMORY_VAULT_KEY)
  --help            this text
`

function main(): number {
  const { values } = parseArgs({
    options: {
      url: {
        type: 'string',
        default: process.env.MEMORY_VAULT_URL ?? 'http://127.0.0.1:3000',
      },
      key: { type: 'string', default: process.env.MEMORY_VAULT_KEY ?? '' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) {
    process.stdout.write(usage)
    return 0
  }
  if (values.key === '') throw new Error('No Memory Key: give --key or set MEMORY_VAULT_KEY')
  if (!URL.canParse(values.url)) throw new Error(`${values.url} is no address of a service`)
  const call = callOver(values.url.replace(/\/+$/, ''), { authorization: `Bearer ${values.key}` })
  serveStdio(() => vaultServer(call))
  return 0
}

try {
  process.exitCode = main()
} catch (error) {
  // Standard output belongs to the protocol.
  console.error((error as Error).message)
  process.exitCode = 1
}
