import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { createInterface } from 'node:readline/promises'
import type { ClientRights } from '#api/client/programs/programs.ts'
import { exitWithUsage, parseCommand } from '#scripts/command-line.ts'
import {
  applyChange,
  backupPath,
  planConnect,
  planUndo,
  resolveLink,
  type Change,
} from '#scripts/clients/connect/change.ts'
import type { Client, ConfigFile, Place, Vault, Way } from '#scripts/clients/connect/client.ts'
import {
  findRights,
  forgetClientKey,
  isKeyFor,
  keepClientKey,
  mintClientKey,
  readClientKey,
  revokeClientKey,
  type ClientKey,
} from '#scripts/clients/connect/client-key.ts'
import {
  clients,
  configFiles,
  notesFor,
  proofsOf,
  whyNoModels,
} from '#scripts/clients/connect/clients.ts'
import { FormatError } from '#scripts/clients/connect/formats/file-format.ts'
import { formatDiff, maskKeys } from '#scripts/clients/connect/diff.ts'
import { hookCommand, hookFiles, hookNotes } from '#scripts/clients/connect/hook-files.ts'
import { prove } from '#scripts/clients/connect/prove.ts'
import { proveHooks } from '#scripts/clients/connect/prove-hooks.ts'
import { listWaiting, sendWaiting, spoolFolder } from '#scripts/hooks/spool.ts'
import { resolveConnection } from '#scripts/service-connection.ts'

const names = Object.keys(clients)
const usage = `Usage: npm run connect -- <client> [options]

Writes the configuration of an AI client so that it uses this memory: its model calls go through the service, or its
hooks recall and store, and the tools of memory are added, as far as the client can be told so in a file. Makes a key for the client, so
that the key of the account stands in no file of another program. Shows what it changes and asks first, keeps the
file as it was in .memory-vault at its side, and calls the service with what it wrote.

  <client>             ${names.join(', ')}
  --undo               puts the files back as they were, and ends the key that was made
  --dry-run            shows the changes and writes nothing
  --yes                does not ask
  --memory <way>       models: its model calls go through the service (default where they can)
                       plugin: its hooks recall at each prompt and store each turn, apart by repository
                       (default for cursor, vscode and a Codex with a ChatGPT login)
                       tools: the tools of memory alone
  --tools-only         the same as --memory tools
  --url <url>          the service (default: BASE_URL, else the one that npm start runs here)
  --key <key>          the Memory Key that makes the client's key, which gets its suffix, such as :read
                       (default: MEMORY_KEY, else that of npm start)
  --config-dir <dir>   the folder of the client's configuration, where it is not the usual one
  --help               this text
`

const print = (line: string): void => void process.stdout.write(`${line}\n`)

async function main(): Promise<number> {
  const { values: options, positionals } = parseCommand(usage, {
    undo: { type: 'boolean' },
    'dry-run': { type: 'boolean' },
    yes: { type: 'boolean' },
    'tools-only': { type: 'boolean' },
    memory: { type: 'string' },
    url: { type: 'string' },
    key: { type: 'string' },
    'config-dir': { type: 'string' },
  })
  const name = positionals[0] ?? ''
  const client = Object.hasOwn(clients, name) ? clients[name] : undefined
  const faults = client && positionals.length === 1 ? [] : [`name one client: ${names.join(', ')}`]
  const { memory: askedWay = options['tools-only'] ? 'tools' : undefined } = options
  if (options['tools-only'] && askedWay !== 'tools')
    faults.push('--tools-only and another --memory exclude each other')
  if (askedWay !== undefined && !isWay(askedWay))
    faults.push(`--memory must be one of ${ways.join(', ')}`)
  if (askedWay === 'plugin' && client && !client.hooks)
    faults.push(`${client.name} has no hooks: --memory must be models or tools`)
  const connection = options.undo
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
  const files = (vault: Vault): ConfigFile[] =>
    joinByPath([
      ...configFiles(client, vault, place),
      ...(client.hooks ? hookFiles(name, vault, place) : []),
    ])
  const noModels = whyNoModels(client, place)
  const canHaveModels = files(unknownVault).some(({ settings }) =>
    settings.some(({ way }) => way === 'models'),
  )
  const way = chooseWay(askedWay, client, { noModels, canHaveModels })
  const [key = '', suffix] = connection.key.split(':')
  const run: Run = {
    name,
    client,
    service: { baseUrl: connection.baseUrl, key },
    suffix: suffix === undefined ? '' : `:${suffix}`,
    files: vault => files(vault).map(file => ({ ...file, chosen: settingsOf(file, way) })),
    way,
    env: place.env,
    dryRun: options['dry-run'] ?? false,
    yes: options.yes ?? false,
  }
  if (noModels !== undefined && !options.undo && askedWay === undefined) print(noModels)
  try {
    return options.undo ? await undo(run) : await connect(run)
  } catch (error) {
    process.stderr.write(`${maskKeys((error as Error).message)}\n`)
    return 1
  }
}

type Run = {
  /** The client's, as the command takes it. */
  name: string
  client: Client
  /** The key has no suffix. */
  service: { baseUrl: string; key: string }
  suffix: string
  files: (vault: Vault) => ConfigFile[]
  way: Way
  env: Place['env']
  dryRun: boolean
  yes: boolean
}

/** In place of a key where only the paths and the settings of the files are asked for. */
const unknownVault: Vault = { baseUrl: '', key: '', rights: 'users' }

/** The file beside which the client's key is saved. */
const keyPathOf = ({ files }: Run): string => resolveLink(files(unknownVault)[0]!.path)

const ways: readonly Way[] = ['models', 'plugin', 'tools']
const isWay = (name: string): name is Way => (ways as readonly string[]).includes(name)

/**
 * The way that was asked for, or the best that a client has.
 *
 * @param where.noModels why its model calls cannot go through the service here
 */
function chooseWay(
  asked: string | undefined,
  { hooks }: Client,
  { noModels, canHaveModels }: { noModels: string | undefined; canHaveModels: boolean },
): Way {
  if (asked !== undefined && isWay(asked)) return asked
  if (noModels !== undefined) return 'plugin'
  return canHaveModels || !hooks ? 'models' : 'plugin'
}

/** The settings that a file gets for a way of memory. */
const settingsOf = ({ settings }: ConfigFile, way: Way) =>
  settings.filter(setting => setting.way === undefined || setting.way === way)

/** Joins the settings of one file: Claude Code has hooks beside the address of its models. */
function joinByPath(files: readonly ConfigFile[]): ConfigFile[] {
  const joined = new Map<string, ConfigFile>()
  for (const file of files) {
    const settings = [...(joined.get(file.path)?.settings ?? []), ...file.settings]
    joined.set(file.path, { ...file, settings })
  }
  return [...joined.values()]
}

async function connect(run: Run): Promise<number> {
  const { name, client, service, dryRun, yes } = run
  const wanted: ClientRights = client.users === 'named' ? 'users' : 'memory'
  const rights = dryRun ? wanted : await orNothingWritten(findRights(service, wanted))
  if (rights !== wanted) print(warnShared(client))
  const keyPath = keyPathOf(run)
  const savedKey = readClientKey(keyPath, name)
  const usableKey = savedKey && isKeyFor(savedKey, service, rights) ? savedKey : undefined
  const changes = plan(run, vaultOf(run, usableKey?.key ?? `<a new key: ${client.name}>`, rights))
  const pending = changes.filter(({ present, planned }) => present !== planned)
  for (const change of pending) print(`${formatDiff(change)}\n`)
  if (dryRun) return dryRunEnd(pending)
  const isNew = !usableKey || !(await isLive(run, usableKey))
  if ((isNew || pending.length > 0) && !(await confirm(yes))) return 1
  const key = isNew
    ? await orNothingWritten(mintClientKey(service, { name: client.name, rights }))
    : usableKey
  const vault = vaultOf(run, key.key, rights)
  await proveAndWrite(run, vault, async () => {
    if (isNew) await revokeClientKey(key)
  })
  if (isNew) {
    keepClientKey(keyPath, name, key)
    if (savedKey) await revokeClientKey(savedKey)
  }
  report(run, vault, plan(run, vault), isNew || pending.length > 0)
  for (const proof of await proveWritten(run, vault)) print(proof)
  if (run.way === 'plugin') print(await proveByHook(run, vault))
  return 0
}

/** Stores and recalls by the command that was written, and takes it out of the vault again. */
async function proveByHook({ name, env, suffix }: Run, { baseUrl, key }: Vault): Promise<string> {
  if (suffix !== '')
    return `The hooks were not tried: with ${suffix} they do one half of their work`
  const command = hookCommand(name)
  return await proveHooks({ client: name, command, baseUrl, key, env }).catch((error: Error) => {
    throw new Error(`${error.message}\nThe files are written; --undo takes them back.`, {
      cause: error,
    })
  })
}

const warnShared = ({ name }: Client): string =>
  `Everybody who uses this ${name} shares the vault of this key: it is not the key of the account, and only that makes keys that open a vault for each user.`

/** The key as the client gets it. */
const vaultOf = ({ service, suffix }: Run, key: string, rights: ClientRights): Vault => ({
  baseUrl: service.baseUrl,
  key: key + suffix,
  rights,
})

const plan = ({ files }: Run, vault: Vault): Change[] => files(vault).map(planConnect)

/** Whether the service knows a key that was made before. */
const isLive = async (run: Run, { key, rights }: ClientKey): Promise<boolean> => {
  const vault = vaultOf(run, key, rights)
  return await provePlanned(run, vault, plan(run, vault)).then(
    () => true,
    () => false,
  )
}

/** Proves the key with what is to be written, then writes it. */
async function proveAndWrite(run: Run, vault: Vault, takeBack: () => Promise<void>): Promise<void> {
  const changes = plan(run, vault)
  try {
    await provePlanned(run, vault, changes)
    for (const change of changes) applyChange(change)
  } catch (error) {
    await takeBack()
    throw error
  }
}

async function orNothingWritten<Result>(work: Promise<Result>): Promise<Result> {
  return await work.catch((error: Error) => {
    throw new Error(`${error.message}\nNothing was written.`, { cause: error })
  })
}

const provePlanned = (run: Run, vault: Vault, changes: Change[]): Promise<string[]> =>
  orNothingWritten(
    proveEach(
      run,
      vault,
      changes.map(({ planned }) => planned ?? ''),
    ),
  )

const proveWritten = (run: Run, vault: Vault): Promise<string[]> =>
  proveEach(
    run,
    vault,
    plan(run, vault).map(({ path, planned }) =>
      planned === null ? '' : readFileSync(path, 'utf8'),
    ),
  )

/** Calls the service with what stands in the texts of the files. */
async function proveEach({ client, way }: Run, vault: Vault, texts: string[]): Promise<string[]> {
  const proofs = proofsOf(client, texts, vault)
  return await Promise.all(
    proofs.filter(({ kind }) => way === 'models' || kind === 'tools').map(prove),
  )
}

function dryRunEnd(pending: Change[]): number {
  print(pending.length > 0 ? 'Nothing was written (--dry-run).' : 'Nothing is to be changed.')
  return 0
}

function report(
  { name, client, way }: Run,
  vault: Vault,
  written: Change[],
  isChanged: boolean,
): void {
  if (!isChanged) print(`${client.name} was connected already; nothing was changed.`)
  for (const { path, original } of isChanged ? written : []) {
    if (original === undefined) continue
    const backup = original === null ? '' : `; as it was: ${backupPath(path)}`
    print(`Written: ${path}${backup}`)
  }
  const notes = [...notesFor(client, vault), ...(way === 'plugin' ? hookNotes(name) : [])]
  for (const note of notes) print(`- ${note}`)
}

async function undo(run: Run): Promise<number> {
  const { name, client, dryRun, yes } = run
  const faults: string[] = []
  const changes = run.files(unknownVault).flatMap(file => {
    try {
      return planUndo(file) ?? []
    } catch (error) {
      // The other files are taken back all the same.
      if (!(error instanceof FormatError)) throw error
      faults.push(error.message)
      return []
    }
  })
  const keyPath = keyPathOf(run)
  const savedKey = readClientKey(keyPath, name)
  if (changes.length === 0 && faults.length === 0 && !savedKey) {
    print(`${client.name} is not connected; nothing was changed.`)
    return 0
  }
  const pending = changes.filter(({ present, planned }) => present !== planned)
  for (const change of pending) print(`${formatDiff(change)}\n`)
  if (dryRun) return dryRunEnd(pending)
  if (pending.length > 0 && !(await confirm(yes))) return 1
  if (client.hooks) await sendLeft(name)
  for (const change of changes) applyChange(change)
  for (const { path, planned, kept: settings = [] } of changes) {
    print(planned === null ? `Removed: ${path}` : `Restored: ${path}`)
    if (settings.length > 0) print(`- ${settings.join(', ')}: as you have set it since`)
  }
  for (const fault of faults) process.stderr.write(`Left as it is: ${fault}\n`)
  if (savedKey) await endKey(run, keyPath, savedKey)
  return faults.length > 0 ? 1 : 0
}

/** Sends what the hooks of a program have kept, while they still have its key. */
async function sendLeft(name: string): Promise<void> {
  await sendWaiting(name)
  const left = listWaiting().filter(({ client }) => client === name)
  if (left.length === 0) return
  const why = left.find(({ tried }) => tried)?.tried?.error ?? 'it is not connected'
  print(
    `${left.length === 1 ? 'One turn was' : `${left.length} turns were`} not sent (${why}). They wait in ${spoolFolder()}, for ${name} to be connected again.`,
  )
}

/** Ends the key of a client that is no longer connected, or names it for its owner to end. */
async function endKey({ name, client }: Run, keyPath: string, savedKey: ClientKey): Promise<void> {
  const fault = await revokeClientKey(savedKey)
  forgetClientKey(keyPath, name)
  if (savedKey.id === undefined) return
  print(
    fault === undefined
      ? `Ended: the key of ${client.name}, ${maskKeys(savedKey.key)}`
      : `The key of ${client.name}, ${maskKeys(savedKey.key)}, still works: ${fault}. End it in the console under Keys, or with DELETE /v1/keys/${savedKey.id}`,
  )
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
