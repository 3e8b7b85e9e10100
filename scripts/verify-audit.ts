import { createReadStream, readFileSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import { faultOf } from '#scripts/command-line.ts'
import { embeddedEnvironment } from '#scripts/embedded.ts'
import { checkEvents } from '#shared/audit/account-event-chain.ts'
import {
  checkExportedFile,
  type FileAnchor as Anchor,
  type FileChain as Chain,
} from '#shared/accounts/exported-file.ts'
import { ConfigFault, readConfig } from '#shared/core/config.ts'
import { Refusal } from '#shared/core/errors.ts'
import { isUuid } from '#shared/core/ids.ts'
import { checkChain } from '#shared/org/audit-chain.ts'
import { accountIds } from '#shared/audit/account-events.postgres.ts'
import { orgIds } from '#shared/org/audit-chain.postgres.ts'
import { openPostgres } from '#shared/storage/postgres/connect.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'

const help = `Usage: node scripts/verify-audit.ts [options]

Checks that the audit of organizations and the events of accounts are as they were written: that none
has been changed, removed or slipped in. Whoever can write to the database could count all hashes anew;
the ends of the chains, kept elsewhere with --save, show that too.

  --org <id>       this organization alone (default: every one, and every account)
  --account <id>   this account alone
  --file <file>    a downloaded export instead of the database: its events, and whether it is whole
  --save <file>    writes where the chains end, for a later check; nothing when one is broken
  --expect <file>  also checks that everything up to there is what it was when it was saved
  --json           print JSON
  --help           this text

Exits 0 when every chain is whole, 1 when one is broken, 2 for faults of the command line.
Reads DATABASE_URL and the rest of the environment as the service does; without DATABASE_URL it works
on the embedded services of DATA_DIR while "npm start" is running. With --file it reads neither.
`

const options = {
  org: { type: 'string' },
  account: { type: 'string' },
  file: { type: 'string' },
  save: { type: 'string' },
  expect: { type: 'string' },
  json: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const

type Values = ReturnType<typeof parseArgs<{ options: typeof options }>>['values']

/** @returns the exit code. */
async function main(): Promise<number> {
  try {
    const { values } = parseArgs({ options })
    if (values.help) {
      process.stdout.write(help)
      return 0
    }
    const wrong = wrongIn(values)
    if (wrong === undefined) return await verify(values)
    process.stderr.write(faultOf([wrong], help))
    return 2
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const isTheirs =
      error instanceof ConfigFault ||
      error instanceof Refusal ||
      error instanceof SyntaxError ||
      /^(ERR_PARSE_ARGS|ENOENT|EACCES|EISDIR)/.test(code ?? '')
    if (!isTheirs) throw error
    process.stderr.write(faultOf([message], help))
    return 2
  }
}

function wrongIn({ org, account, file }: Values): string | undefined {
  if ([org, account, file].filter(value => value !== undefined).length > 1) {
    return 'Only one of --org, --account and --file can be given'
  }
  if (org !== undefined && !isUuid(org)) return '--org must be the id of an organization'
  if (account !== undefined && !isUuid(account)) return '--account must be the id of an account'
  return undefined
}

async function verify(values: Values): Promise<number> {
  const { file, save, expect, json } = values
  const anchors = expect === undefined ? [] : anchorsIn(expect)
  const say = (chain: Chain): void => void (json || process.stdout.write(lineOf(chain)))
  const { chains, fault, ...rest } =
    file === undefined
      ? { chains: await inDatabase(values, anchors, say), fault: null }
      : await inFile(file, anchors, say)
  if (json) {
    const organizations = chains.filter(chain => 'org' in chain)
    const accounts = chains.filter(chain => 'account' in chain)
    const whole = file === undefined ? {} : { fault, ...rest }
    process.stdout.write(`${JSON.stringify({ organizations, accounts, ...whole })}\n`)
  } else if (chains.length === 0) process.stdout.write('There is no chain.\n')
  const isWhole = fault === null && chains.every(({ broken }) => broken === null)
  if (isWhole && save !== undefined) {
    writeFileSync(save, `${JSON.stringify(chains.map(anchorOf), null, 2)}\n`)
  }
  return isWhole ? 0 : 1
}

async function inFile(file: string, anchors: readonly Anchor[], say: (chain: Chain) => void) {
  const input = createReadStream(file)
  // A file that cannot be opened ends the lines without a word.
  const failed = new Promise<never>((_, reject) => input.once('error', reject))
  const lines = createInterface({ input, crlfDelay: Infinity })
  const checked = await Promise.race([checkExportedFile(lines, anchors), failed])
  for (const chain of checked.chains) say(chain)
  if (checked.fault !== null) process.stderr.write(`The file is not whole: ${checked.fault}\n`)
  return checked
}

async function inDatabase(
  { org, account }: Values,
  anchors: readonly Anchor[],
  say: (chain: Chain) => void,
): Promise<Chain[]> {
  const config = readConfig(embeddedEnvironment(process.env) ?? process.env)
  const postgres = openPostgres(config.databaseUrl, { max: 1, onError: () => {} })
  const { query } = postgres
  const checked: Chain[] = []
  const note = (chain: Chain): void => {
    checked.push(chain)
    say(chain)
  }
  try {
    for await (const id of account === undefined ? asked(query, orgIds, org) : []) {
      const ours = anchors.filter(anchor => 'org' in anchor && anchor.org === id)
      note(await checkChain(query, id, ours))
    }
    for await (const id of org === undefined ? asked(query, accountIds, account) : []) {
      const ours = anchors.filter(anchor => 'account' in anchor && anchor.account === id)
      note(await checkEvents(query, id, ours))
    }
    return checked
  } finally {
    await postgres.close()
  }
}

const anchorOf = (chain: Chain): Anchor => {
  const { position, hash } = chain
  return 'org' in chain
    ? { org: chain.org, position, hash }
    : { account: chain.account, position, hash }
}

const anchorsIn = (file: string): Anchor[] => JSON.parse(readFileSync(file, 'utf8')) as Anchor[]

const pageMax = 500

async function* asked(
  query: Query,
  idsAfter: typeof orgIds,
  one: string | undefined,
): AsyncGenerator<string> {
  if (one !== undefined) return yield one
  for (let after: string | null = null; ;) {
    const ids: string[] = await idsAfter(query, after, pageMax)
    yield* ids
    after = ids.at(-1) ?? null
    if (ids.length < pageMax) return
  }
}

function lineOf(chain: Chain): string {
  const { position, hash, broken } = chain
  const whose = 'org' in chain ? `organization ${chain.org}` : `account ${chain.account}`
  if (!broken) return `${whose}  whole   ${position} events  ${hash.slice(0, 16)}\n`
  const which = broken.id === null ? '' : `, event ${broken.id},`
  return `${whose}  BROKEN  at ${broken.position}${which} is ${broken.fault}\n`
}

process.exitCode = await main()
