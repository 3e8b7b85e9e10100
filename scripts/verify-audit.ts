import { createReadStream, readFileSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { exitWithUsage, parseOptions } from '#scripts/command-line.ts'
import { embeddedEnvironment } from '#scripts/embedded-environment.ts'
import { verifyAccountEvents } from '#shared/events/account-event-chain.ts'
import {
  verifyExportFile,
  type ExportAnchor,
  type FileChainResult,
} from '#shared/accounts/verify-export-file.ts'
import { ConfigError, readConfig } from '#shared/core/config.ts'
import { Refusal } from '#shared/core/errors.ts'
import { isUuid } from '#shared/core/ids.ts'
import { verifyAuditChain, listOrgIds } from '#shared/org/trail/audit-chain.postgres.ts'
import { isErasureRecorded } from '#shared/accounts/account-erasures.postgres.ts'
import { accountIdsWithEvents } from '#shared/events/account-events.postgres.ts'
import { findOrgAccount } from '#shared/org/base/orgs.postgres.ts'
import { openPostgres, type Query } from '#shared/storage/postgres/connect.ts'

const help = `Usage: npm exec -- node scripts/verify-audit.ts [options]

Verifies the hash chains of the audit events of organizations and accounts: no event was changed, removed
or inserted. A person who can write to the database could compute all hashes again; the ends of the
chains, saved elsewhere with --save, reveal that too.

  --org <id>       only this organization (default: all organizations and accounts)
  --account <id>   only this account
  --file <file>    verifies a downloaded export instead of the database: its events and completeness
  --save <file>    writes the ends of the chains for a later check; writes nothing when one is broken
  --expect <file>  also checks that every chain still contains its saved end, and that none is gone but
                   those of erased accounts and deleted organizations
  --json           print JSON
  --help           this text

Exits 0 when every chain is intact, 1 when one is broken, 2 for faults of the command line.
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
} as const

/** `owner` is the account of an organization, whose events go when that account is erased. */
type Anchor = ExportAnchor & { owner?: string }

/** A verified chain; a downloaded export does not name the owner. */
type Chain = FileChainResult & { owner?: string }

type OptionValues = ReturnType<typeof parseOptions<typeof options>>

/** @returns the exit code. */
async function main(): Promise<number> {
  try {
    const values = parseOptions(help, options)
    const problem = validateOptions(values)
    if (problem === undefined) return await verifyChains(values)
    exitWithUsage([problem], help)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const isUserError =
      error instanceof ConfigError ||
      error instanceof Refusal ||
      error instanceof SyntaxError ||
      /^(ENOENT|EACCES|EISDIR)/.test(code ?? '')
    if (!isUserError) throw error
    exitWithUsage([message], help)
  }
}

function validateOptions({ org, account, file }: OptionValues): string | undefined {
  if ([org, account, file].filter(value => value !== undefined).length > 1) {
    return 'Only one of --org, --account and --file can be given'
  }
  if (org !== undefined && !isUuid(org)) return '--org must be the id of an organization'
  if (account !== undefined && !isUuid(account)) return '--account must be the id of an account'
  return undefined
}

async function verifyChains(values: OptionValues): Promise<number> {
  const { file, save, expect, json } = values
  const anchors = expect === undefined ? [] : readAnchors(expect)
  const report = (chain: Chain): void => void (json || process.stdout.write(formatChain(chain)))
  const { chains, fault, ...rest } =
    file === undefined
      ? { chains: await verifyDatabase(values, anchors, report), fault: null }
      : await verifyFile(file, anchors, report)
  if (json) {
    const organizations = chains.filter(chain => 'org' in chain)
    const accounts = chains.filter(chain => 'account' in chain)
    const fileResult = file === undefined ? {} : { fault, ...rest }
    process.stdout.write(`${JSON.stringify({ organizations, accounts, ...fileResult })}\n`)
  } else if (chains.length === 0) process.stdout.write('There is no chain.\n')
  const isIntact = fault === null && chains.every(({ broken }) => broken === null)
  if (isIntact && save !== undefined) {
    writeFileSync(save, `${JSON.stringify(chains.map(toAnchor), null, 2)}\n`)
  }
  return isIntact ? 0 : 1
}

async function verifyFile(
  file: string,
  anchors: readonly Anchor[],
  report: (chain: Chain) => void,
) {
  const input = createReadStream(file)
  // When the file cannot be opened, readline ends without an error.
  const failed = new Promise<never>((_, reject) => input.once('error', reject))
  const lines = createInterface({ input, crlfDelay: Infinity })
  const checked = await Promise.race([verifyExportFile(lines, anchors), failed])
  for (const chain of checked.chains) report(chain)
  if (checked.fault !== null) process.stderr.write(`The file is not whole: ${checked.fault}\n`)
  return checked
}

async function verifyDatabase(
  { org, account, json }: OptionValues,
  anchors: readonly Anchor[],
  report: (chain: Chain) => void,
): Promise<Chain[]> {
  const config = readConfig(embeddedEnvironment(process.env) ?? process.env)
  const postgres = openPostgres(config.databaseUrl, { max: 1, onError: () => {} })
  const { query } = postgres
  const checked: Chain[] = []
  const addResult = (chain: Chain): void => {
    checked.push(chain)
    report(chain)
  }
  try {
    for await (const id of account === undefined ? selectedIds(query, listOrgIds, org) : []) {
      const chainAnchors = anchors.filter(anchor => 'org' in anchor && anchor.org === id)
      const owner = await findOrgAccount(query, id)
      const chain = await verifyAuditChain(query, id, chainAnchors)
      addResult(owner === undefined ? chain : { ...chain, owner })
    }
    for await (const id of org === undefined
      ? selectedIds(query, accountIdsWithEvents, account)
      : []) {
      const chainAnchors = anchors.filter(anchor => 'account' in anchor && anchor.account === id)
      addResult(await verifyAccountEvents(query, id, chainAnchors))
    }
    if (org !== undefined || account !== undefined) return checked
    for (const anchor of goneChains(anchors, checked)) {
      if (!(await isErased(query, anchor))) {
        addResult(
          'org' in anchor
            ? await verifyAuditChain(query, anchor.org, [anchor])
            : await verifyAccountEvents(query, anchor.account, [anchor]),
        )
      } else if (!json)
        process.stdout.write(`${formatSubject(anchor)}  erased  since its end was saved\n`)
    }
    return checked
  } finally {
    await postgres.close()
  }
}

const isErased = async (query: Query, anchor: Anchor): Promise<boolean> =>
  (await isErasureRecorded(query, anchor)) ||
  (anchor.owner !== undefined && (await isErasureRecorded(query, { account: anchor.owner })))

type Subject = { org: string } | { account: string }

const formatSubject = (subject: Subject): string =>
  'org' in subject ? `organization ${subject.org}` : `account ${subject.account}`

/** The saved ends, one for each owner, of chains with events that were not among those checked. */
function goneChains(anchors: readonly Anchor[], checked: readonly Chain[]): Anchor[] {
  const known = new Set(checked.map(formatSubject))
  const gone = anchors.filter(anchor => anchor.position > 0 && !known.has(formatSubject(anchor)))
  return [...new Map(gone.map(anchor => [formatSubject(anchor), anchor])).values()]
}

const toAnchor = (chain: Chain): Anchor => {
  const { position, hash, owner } = chain
  return 'org' in chain
    ? { org: chain.org, ...(owner !== undefined && { owner }), position, hash }
    : { account: chain.account, position, hash }
}

const readAnchors = (file: string): Anchor[] => JSON.parse(readFileSync(file, 'utf8')) as Anchor[]

const pageSize = 500

async function* selectedIds(
  query: Query,
  idsAfter: typeof listOrgIds,
  one: string | undefined,
): AsyncGenerator<string> {
  if (one !== undefined) return yield one
  for (let after: string | null = null; ;) {
    const ids: string[] = await idsAfter(query, after, pageSize)
    yield* ids
    after = ids.at(-1) ?? null
    if (ids.length < pageSize) return
  }
}

function formatChain(chain: Chain): string {
  const { position, hash, broken } = chain
  const subject = formatSubject(chain)
  if (!broken) return `${subject}  whole   ${position} events  ${hash.slice(0, 16)}\n`
  const which = broken.id === null ? '' : `, event ${broken.id},`
  return `${subject}  BROKEN  at ${broken.position}${which} is ${broken.fault}\n`
}

process.exitCode = await main()
