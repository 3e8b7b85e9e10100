#!/usr/bin/env node
// A package of its own, for Node 18.3 and later: it imports nothing but Node and the files of this folder.
import { parseArgs } from 'node:util'
import { runBridge } from './bridge.ts'

const usage = `Usage: memory-vault-mcp [options]

Serves a vault over standard input and output, for MCP clients that start a program instead of opening
an address. Clients that support streamable HTTP do not need it: configure <url>/mcp and the key there.

  --url <url>       the service (default: MEMORY_VAULT_URL, else http://127.0.0.1:3000)
  --key <key>       the Memory Key, which may carry :read or :write (default: MEMORY_VAULT_KEY)
  --user <id>       your own id of the user whose vault is opened, with the key that was made with the account
                    (default: MEMORY_VAULT_USER)
  --tools <names>   only these tools, such as search,store
  --help            this text
`

type Options = { url: string; key: string; user: string; tools: string; help: boolean }

function readOptions(): Options {
  const {
    MEMORY_VAULT_URL: url = 'http://127.0.0.1:3000',
    MEMORY_VAULT_KEY: key = '',
    MEMORY_VAULT_USER: user = '',
  } = process.env
  const { values } = parseArgs({
    options: {
      url: { type: 'string' },
      key: { type: 'string' },
      user: { type: 'string' },
      tools: { type: 'string' },
      help: { type: 'boolean' },
    },
  })
  return { url, key, user, tools: '', help: false, ...values }
}

/** What is missing or wrong, a sentence each. */
function findFaults({ url, key }: Options): string[] {
  const faults: string[] = []
  if (key === '') faults.push('No Memory Key: use --key or set MEMORY_VAULT_KEY')
  if (!/^https?:\/\/[^/]/.test(url)) faults.push(`${url} is not a valid URL`)
  return faults
}

async function main(): Promise<number> {
  const options = readOptions()
  if (options.help) {
    process.stdout.write(usage)
    return 0
  }
  const faults = findFaults(options)
  if (faults.length > 0) throw new Error(faults.join('\n'))
  const query = options.tools === '' ? '' : `?tools=${encodeURIComponent(options.tools)}`
  await runBridge({
    // The address of the tools is taken for that of the service too.
    url: `${options.url.replace(/(?:\/mcp)?\/*$/, '')}/mcp${query}`,
    key: options.key,
    user: options.user,
    input: process.stdin,
    output: process.stdout,
  })
  return 0
}

main().then(
  code => void (process.exitCode = code),
  (error: Error) => {
    process.stderr.write(`${error.message}\n\n${usage.split('\n', 1)[0]}\nSee --help.\n`)
    process.exitCode = 2
  },
)
