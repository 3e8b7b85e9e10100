import { parseArgs } from 'node:util'
import { createCredentials, type NewAccount } from '#scripts/create-credentials.ts'
import { exitWithUsage } from '#scripts/command-line.ts'
import { embeddedEnvironment } from '#scripts/embedded-environment.ts'
import { findAccountByEmail } from '#shared/access/accounts.postgres.ts'
import { ConfigError, readConfig } from '#shared/core/config.ts'
import { Refusal } from '#shared/core/errors.ts'
import { startupErrorMessage } from '#shared/core/process-lifecycle.ts'
import { openPostgres, type Transaction } from '#shared/storage/postgres/connect.ts'

const help = `Usage: npm run create-account -- --email <email> [options]

Creates an account for an email, with a Memory Key of an empty vault and an admin credential, and prints
both keys; they are shown once. Both may act on everything of the account; keys for its users are created
with POST /v1/keys. For an email that has an account, adds a new pair of keys to it; the card and balance of
such an account are changed with scripts/account-billing.ts.

  --email <email>          the email of the account (required)
  --name <label>           label of the Memory Key (default: "First Key")
  --key-days <n>           the Memory Key expires after n days (default: never)
  --admin-days <n>         the admin credential expires after n days (default: 365)
  --no-admin               no admin credential
  --billed                 no card on file yet: uploads and imports are refused (new accounts only)
  --payment-method <name>  a card on file, by its name in your billing (new accounts only; default: self-hosted)
  --balance <tokens>       token balance (new accounts only; default: unlimited)
  --json                   print JSON
  --help                   this text

Reads DATABASE_URL, KEY_PEPPER and the rest of the environment as the service does; without
DATABASE_URL it works on the embedded services of DATA_DIR while "npm start" is running.
`

const options = {
  email: { type: 'string' },
  name: { type: 'string', default: 'First Key' },
  'key-days': { type: 'string' },
  'admin-days': { type: 'string', default: '365' },
  'no-admin': { type: 'boolean', default: false },
  billed: { type: 'boolean', default: false },
  'payment-method': { type: 'string' },
  balance: { type: 'string' },
  json: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const

type OptionValues = ReturnType<typeof parseArgs<{ options: typeof options }>>['values']

process.exitCode = await main()

/** @returns the exit code: 2 for faults of the command line or the environment. */
async function main(): Promise<number> {
  try {
    const { values } = parseArgs({ options })
    if (!values.help) return await createAccount(values)
    process.stdout.write(help)
    return 0
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const isUserError =
      error instanceof ConfigError || error instanceof Refusal || code?.startsWith('ERR_PARSE_ARGS')
    if (!isUserError) throw error
    exitWithUsage([startupErrorMessage(error, process.env) ?? (error as Error).message], help)
  }
}

async function createAccount(values: OptionValues): Promise<number> {
  const faults: string[] = []
  const account = parseAccount(values, faults)
  if (faults.length > 0) {
    exitWithUsage(faults, help)
  }
  const config = readConfig(embeddedEnvironment(process.env) ?? process.env)
  const postgres = openPostgres(config.databaseUrl, { max: 1, onError: () => {} })
  try {
    const created = await postgres.transaction(async tx => {
      if (values.billed || values['payment-method'] !== undefined || account.balance !== null) {
        await refuseIgnoredBilling(tx, account)
      }
      return createCredentials(tx, config.keyPepper, account)
    })
    const output = {
      email: created.email,
      memory_key: created.memoryKey,
      ...(created.adminKey && { admin_key: created.adminKey }),
    }
    const lines = Object.entries(output).map(([name, value]) => `${name.padEnd(12)}${value}\n`)
    process.stdout.write(values.json ? `${JSON.stringify(output)}\n` : lines.join(''))
    return 0
  } finally {
    await postgres.close()
  }
}

/** @throws Refusal `conflict` for a card or balance that an existing account would not get. */
async function refuseIgnoredBilling(tx: Transaction, account: NewAccount): Promise<void> {
  if ((await findAccountByEmail(tx.query, account.email.toLowerCase())) === undefined) return
  throw new Refusal(
    'conflict',
    `${account.email} has an account: --billed, --payment-method and --balance are for new accounts only. ` +
      'Leave them out, or change those of the account with scripts/account-billing.ts.',
  )
}

function parseAccount(values: OptionValues, faults: string[]): NewAccount {
  const parseCount = (name: string, text: string | undefined): number | null => {
    if (text === undefined) return null
    const value = Number(text)
    if (!Number.isSafeInteger(value) || value < 1)
      faults.push(`--${name} must be a whole number from 1`)
    return value
  }
  if (values.billed && values['payment-method'] !== undefined)
    faults.push('--billed and --payment-method exclude each other')
  const email = values.email ?? ''
  if (!/^[^\s@]+@[^\s@]+$/.test(email)) faults.push('--email must be an email address')
  return {
    email,
    keyName: values.name,
    keyLifetimeDays: parseCount('key-days', values['key-days']),
    adminLifetimeDays: values['no-admin'] ? null : parseCount('admin-days', values['admin-days']),
    paymentMethod: values['payment-method'] ?? (values.billed ? null : 'self-hosted'),
    balance: parseCount('balance', values.balance),
  }
}
