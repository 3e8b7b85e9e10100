import { readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { embeddedEnvironment } from '#scripts/embedded.ts'
import { ConfigFault, readConfig } from '#shared/config.ts'
import { Refusal } from '#shared/errors.ts'
import { isUuid } from '#shared/ids.ts'
import { checkChain, type Anchor, type CheckedChain } from '#shared/org/audit-chain.ts'
import { orgIds } from '#shared/postgres/audit-chain.ts'
import { openPostgres } from '#shared/postgres/connect.ts'
import type { Query } from '#shared/postgres/connect.ts'

const help = `Usage: node scripts/verify-audit.ts [options]

Checks that the audit of organizations is as it was written: that no event has been changed, removed
or slipped in. Whoever can write to the database could count all hashes anew; the ends of the chains,
kept elsewhere with --save, show that too.

  --org <id>       this organization alone (default: every one)
  --save <file>    writes where the chains end, for a later check; nothing when one is broken
  --expect <file>  also checks that everything up to there is what it was when it was saved
  --json           print JSON
  --help           this text

Exits 0 when every chain is whole, 1 when one is broken, 2 for faults of the command line.
Reads DATABASE_URL and the rest of the environment as the service does; without DATABASE_URL it works
on the embedded services of DATA_DIR while "npm start" is running.
`

const options = {
  org: { type: 'string' },
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
    if (!values.help) return await verify(values)
    process.stdout.write(help)
    return 0
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const isTheirs =
      error instanceof ConfigFault ||
      error instanceof Refusal ||
      error instanceof SyntaxError ||
      /^(ERR_PARSE_ARGS|ENOENT|EACCES)/.test(code ?? '')
    if (!isTheirs) throw error
    process.stderr.write(`${message}\nSee --help.\n`)
    return 2
  }
}

async function verify({ org, save, expect, json }: Values): Promise<number> {
  if (org !== undefined && !isUuid(org)) {
    process.stderr.write('--org must be the id of an organization\nSee --help.\n')
    return 2
  }
  const anchors = expect === undefined ? [] : anchorsIn(expect)
  const config = readConfig(embeddedEnvironment(process.env) ?? process.env)
  const postgres = openPostgres(config.databaseUrl, { max: 1, onError: () => {} })
  try {
    const checked: CheckedChain[] = []
    for await (const id of asked(postgres.query, org)) {
      const ours = anchors.filter(anchor => anchor.org === id)
      const chain = await checkChain(postgres.query, id, ours)
      checked.push(chain)
      if (!json) process.stdout.write(lineOf(chain))
    }
    if (json) process.stdout.write(`${JSON.stringify({ organizations: checked })}\n`)
    else if (checked.length === 0) process.stdout.write('There is no organization.\n')
    const isWhole = checked.every(({ broken }) => broken === null)
    const ends = checked.map(({ org, position, hash }): Anchor => ({ org, position, hash }))
    if (isWhole && save !== undefined) writeFileSync(save, `${JSON.stringify(ends, null, 2)}\n`)
    return isWhole ? 0 : 1
  } finally {
    await postgres.close()
  }
}

const anchorsIn = (file: string): Anchor[] => JSON.parse(readFileSync(file, 'utf8')) as Anchor[]

const pageMax = 500

async function* asked(query: Query, org: string | undefined): AsyncGenerator<string> {
  if (org !== undefined) return yield org
  for (let after: string | null = null; ;) {
    const ids: string[] = await orgIds(query, after, pageMax)
    yield* ids
    after = ids.at(-1) ?? null
    if (ids.length < pageMax) return
  }
}

function lineOf({ org, position, hash, broken }: CheckedChain): string {
  if (!broken) return `${org}  whole   ${position} events  ${hash.slice(0, 16)}\n`
  const which = broken.id === null ? '' : `, event ${broken.id},`
  return `${org}  BROKEN  at ${broken.position}${which} is ${broken.fault}\n`
}

process.exitCode = await main()
