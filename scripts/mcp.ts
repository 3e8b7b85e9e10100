import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { callOver } from '#api/mcp/call.ts'
import { vaultServer } from '#api/mcp/server.ts'
import { faultOf, optionsOf } from '#scripts/command-line.ts'

const usage = `Usage: node scripts/mcp.ts [options]

Serves a vault over standard input and output, for MCP clients that start a program instead of opening
an address. Clients that speak streamable HTTP need no bridge: give them <url>/mcp and the key.

  --url <address>   the service (default: MEMORY_VAULT_URL, else http://127.0.0.1:3000)
  --key <key>       the Memory Key, which may carry :read or :write (default: MEMORY_VAULT_KEY)
  --help            this text
`

function main(): number {
  const { url, key } = optionsOf(usage, {
    url: {
      type: 'string',
      default: process.env.MEMORY_VAULT_URL ?? 'http://127.0.0.1:3000',
    },
    key: { type: 'string', default: process.env.MEMORY_VAULT_KEY ?? '' },
  })
  const faults: string[] = []
  if (key === '') faults.push('No Memory Key: give --key or set MEMORY_VAULT_KEY')
  if (!URL.canParse(url)) faults.push(`${url} is no address of a service`)
  if (faults.length > 0) {
    process.stderr.write(faultOf(faults, usage))
    return 2
  }
  const call = callOver(url.replace(/\/+$/, ''), { authorization: `Bearer ${key}` })
  serveStdio(() => vaultServer(call))
  return 0
}

process.exitCode = main()
