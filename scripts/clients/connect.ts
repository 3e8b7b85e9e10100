import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { createInterface } from 'node:readline/promises'
import { exitWithUsage, parseCommand } from '#scripts/command-line.ts'
import {
  applyChange,
  backupPath,
  isReadableByOthers,
  planConnect,
  planUndo,
  type Change,
} from '#scripts/clients/connect/change.ts'
import {
  clients,
  type Client,
  type ConfigFile,
  type Place,
  type Vault,
} from '#scripts/clients/connect/clients.ts'
import { formatDiff, maskKeys } from '#scripts/clients/connect/diff.ts'
import { prove } from '#scripts/clients/connect/prove.ts'
import { resolveConnection } from '#scripts/service-connection.ts'

const names = Object.keys(clients)
const usage = `Usage: npm run connect -- <client> [options]

Writes the configuration of an AI client so that it uses this memory: its model calls go through the service
and the tools of memory are added, as far as the client can be told so in a file. Shows what it changes
and asks first, keeps the file as it was in .memory-vault at its side, and calls the service with what it wrote.

  <client>             ${names.join(', ')}
  --undo               puts the files back as they were
  --dry-run            shows the changes and writes nothing
  --yes                does not ask
  --url <url>          the service (default: BASE_URL, else the one that npm start runs here)
  --key <key>          the Memory Key, which may carry :read (default: MEMORY_KEY, else that of npm start)
  --config-dir <dir>   the folder of the client's configuration, where it is not the usual one
  --help               this text
`

const print = (line: string): void => void process.stdout.write(`${line}\n`)

async function main(): Promise<number> {
  const { values: options, positionals } = parseCommand(usage, {
    undo: { type: 'boolean' },
    'dry-run': { type: 'boolean' },
    yes: { type: 'boolean' },
    url: { type: 'string' },
    key: { type: 'string' },
    'config-dir': { type: 'string' },
  })
  const client = Object.hasOwn(clients, positionals[0] ?? '') ? clients[positionals[0]!] : undefined
  const faults = client && positionals.length === 1 ? [] : [`name one client: ${names.join(', ')}`]
  const vault: Vault = options.undo
    ? { baseUrl: '', key: '' }
    : resolveConnection(
        { 'base-url': options.url, key: options.key },
        { env: process.env, faults, urlOption: '--url' },
      )
  if (faults.length > 0 || !client) {
    exitWithUsage(faults, usage)
  }
  const place: Place = {
    // A variable that is set to nothing names no folder.
    env: Object.fromEntries(Object.entries(process.env).filter(([, value]) => value !== '')),
    home: homedir(),
    platform: process.platform,
    configDir: options['config-dir'] || undefined,
    cwd: process.env.INIT_CWD ?? process.cwd(),
  }
  const files = client.files(vault, place)
  const run = { files, dryRun: options['dry-run'] ?? false, yes: options.yes ?? false }
  try {
    return options.undo ? await undo(client, run) : await connect(client, run)
  } catch (error) {
    process.stderr.write(`${maskKeys((error as Error).message)}\n`)
    return 1
  }
}

type Run = { files: ConfigFile[]; dryRun: boolean; yes: boolean }

async function connect(client: Client, { files, dryRun, yes }: Run): Promise<number> {
  const changes = files.map(planConnect)
  const open = changes.filter(({ before, after }) => before !== after)
  for (const change of open) print(`${formatDiff(change)}\n`)
  if (dryRun) return dryRunEnd(open)
  // A wrong address or key is found before anything is written.
  const written = changes.map(({ after }) => after ?? '')
  await proveAll(client, files, written).catch((error: Error) => {
    throw new Error(`${error.message}\nNothing was written.`, { cause: error })
  })
  if (open.length > 0 && !(await confirm(yes))) return 1
  for (const change of changes) applyChange(change)
  const proofs = await proveAll(
    client,
    files,
    changes.map(({ path }) => readFileSync(path, 'utf8')),
  )
  report(client, open)
  for (const proof of proofs) print(proof)
  return 0
}

/** Calls the service with what stands in the texts of the files. */
async function proveAll(client: Client, files: ConfigFile[], texts: string[]): Promise<string[]> {
  const proofs = client.proofs((file, ...at) => files[file]!.format.get(texts[file]!, at))
  return await Promise.all(proofs.map(prove))
}

function dryRunEnd(open: Change[]): number {
  print(open.length > 0 ? 'Nothing was written (--dry-run).' : 'Nothing is to be changed.')
  return 0
}

function report({ title, notes }: Client, open: Change[]): void {
  if (open.length === 0) print(`${title} was connected already; nothing was changed.`)
  for (const { path, original } of open) {
    const backup = original === null ? '' : `; as it was: ${backupPath(path)}`
    print(`Written: ${path}${backup}`)
    if (isReadableByOthers(path)) {
      print(`Other users of this machine can read the key in it: chmod 600 ${path}`)
    }
  }
  for (const note of notes) print(`- ${note}`)
}

async function undo({ title }: Client, { files, dryRun, yes }: Run): Promise<number> {
  const changes = files.map(planUndo).filter(change => change !== undefined)
  if (changes.length === 0) {
    print(`${title} is not connected; nothing was changed.`)
    return 0
  }
  const open = changes.filter(({ before, after }) => before !== after)
  for (const change of open) print(`${formatDiff(change)}\n`)
  if (dryRun) return dryRunEnd(open)
  if (open.length > 0 && !(await confirm(yes))) return 1
  for (const change of changes) applyChange(change)
  for (const { path, after } of changes)
    print(after === null ? `Removed: ${path}` : `Restored: ${path}`)
  return 0
}

/** Asks at a terminal; elsewhere `--yes` is the only consent. */
async function confirm(yes: boolean): Promise<boolean> {
  if (yes) return true
  if (!process.stdin.isTTY || !process.stdout.isTTY) {
    process.stderr.write(
      'This is no terminal that could be asked: add --yes. Nothing was written.\n',
    )
    return false
  }
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  const answer = await terminal.question('Write this? [y/N] ')
  terminal.close()
  if (/^y(?:es)?$/i.test(answer.trim())) return true
  print('Nothing was written.')
  return false
}

process.exitCode = await main()
