import { exitWithUsage, parseOptions } from '#scripts/command-line.ts'
import { embeddedEnvironment } from '#scripts/embedded-environment.ts'
import { findAccountByEmail, type AccountBilling } from '#shared/access/accounts.postgres.ts'
import { balanceMax, changeBilling, type BillingChange } from '#shared/accounts/change-billing.ts'
import { ConfigError, readConfig } from '#shared/core/config.ts'
import { Refusal } from '#shared/core/errors.ts'
import { startupErrorMessage } from '#shared/core/process-lifecycle.ts'
import { serviceActor } from '#shared/events/account-events.postgres.ts'
import { openPostgres } from '#shared/storage/postgres/connect.ts'

const help = `Usage: npm exec -- node scripts/account-billing.ts --email <email> [options]

Changes the card on file and the token balance of an account, and prints what they are then. What changes
is recorded as an event of the account, by "service", with the values before and after. The operator's
admin credential does the same over HTTP: PATCH /v1/operator/tenants/:accountId.

  --email <email>          the email of the account (required)
  --payment-method <name>  a card on file, by its name in your billing
  --no-payment-method      no card on file: uploads and imports are refused
  --balance <tokens>       the balance from now on: a whole number from 0, or "unlimited"
  --add-balance <tokens>   adds to the balance that is left
  --json                   print JSON
  --help                   this text

At least one change is required; --balance and --add-balance exclude each other, and so do
--payment-method and --no-payment-method.
Exit code: 0 when it was changed, 1 when there is no such account or the change is refused, 2 for faults
of the command line or the environment.

Reads DATABASE_URL and the rest of the environment as the service does; without DATABASE_URL it works
on the embedded services of DATA_DIR while "npm start" is running.
`

const values = parseOptions(help, {
  email: { type: 'string' },
  'payment-method': { type: 'string' },
  'no-payment-method': { type: 'boolean', default: false },
  balance: { type: 'string' },
  'add-balance': { type: 'string' },
  json: { type: 'boolean', default: false },
})

async function main(): Promise<number> {
  const faults: string[] = []
  const email = values.email?.toLowerCase() ?? ''
  if (!/^[^\s@]+@[^\s@]+$/.test(email)) faults.push('--email must be an email address')
  const change = parseChange(faults)
  if (faults.length > 0) exitWithUsage(faults, help)
  try {
    const billing = await applyChange(email, change)
    process.stdout.write(values.json ? `${JSON.stringify(billing)}\n` : formatLines(billing))
    return 0
  } catch (error) {
    if (error instanceof ConfigError) exitWithUsage([error.message], help)
    if (error instanceof Refusal) return fail(1, startupErrorMessage(error, process.env)!)
    throw error
  }
}

function parseChange(faults: string[]): BillingChange {
  const card = values['payment-method']
  const noCard = values['no-payment-method']
  if (card !== undefined && noCard)
    faults.push('--payment-method and --no-payment-method exclude each other')
  // oxlint-disable-next-line no-control-regex -- control characters are what is refused
  if (card !== undefined && !/^[^\u0000-\u001F\u007F-\u009F]{1,200}$/.test(card))
    faults.push('--payment-method must have 1 to 200 characters')
  if (values.balance !== undefined && values['add-balance'] !== undefined)
    faults.push('--balance and --add-balance exclude each other')
  const change: BillingChange = {
    paymentMethod: noCard ? null : card,
    balance:
      values.balance === 'unlimited' ? null : parseTokens('balance', values.balance, 0, faults),
    addBalance: parseTokens('add-balance', values['add-balance'], 1, faults),
  }
  if (Object.values(change).every(value => value === undefined))
    faults.push('Nothing to change: give a payment method or a balance')
  return change
}

function parseTokens(
  name: string,
  text: string | undefined,
  min: number,
  faults: string[],
): number | undefined {
  if (text === undefined) return undefined
  const tokens = /^\d+$/.test(text) ? Number(text) : NaN
  if (!(tokens >= min && tokens <= balanceMax))
    faults.push(`--${name} must be a whole number from ${min} to ${balanceMax}`)
  return tokens
}

async function applyChange(email: string, change: BillingChange) {
  const config = readConfig(embeddedEnvironment(process.env) ?? process.env)
  const postgres = openPostgres(config.databaseUrl, { max: 1, onError: () => {} })
  try {
    return await postgres.transaction(async tx => {
      const account = await findAccountByEmail(tx.query, email)
      if (account === undefined) throw new Refusal('missing', `No account has the email ${email}`)
      return toOutput(email, account, await changeBilling(tx, account, change, serviceActor))
    })
  } finally {
    await postgres.close()
  }
}

const toOutput = (email: string, account_id: string, billing: AccountBilling) => ({
  email,
  account_id,
  payment_method: billing.paymentMethod,
  balance: billing.balance,
})

const formatLines = ({ email, account_id, payment_method, balance }: ReturnType<typeof toOutput>) =>
  Object.entries({
    email,
    account_id,
    payment_method: payment_method ?? 'none',
    balance: balance ?? 'unlimited',
  })
    .map(([name, value]) => `${name.padEnd(16)}${value}\n`)
    .join('')

function fail(code: number, text: string): number {
  process.stderr.write(`${text.trimEnd()}\n`)
  return code
}

process.exitCode = await main()
