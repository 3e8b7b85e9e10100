import { readFileSync } from 'node:fs'
import { exitWithUsage, parseCommand } from '#scripts/command-line.ts'
import { emailProof, verifyReceipt, type ReceiptKey } from '#shared/accounts/erasure-receipt.ts'

const usage = `Usage: npm exec -- node scripts/verify-receipt.ts <receipt> --keys <file> [options]

Verifies the receipt of an erasure.

  <receipt>          a file with the receipt, or with the answer of GET /v1/receipts/…
  --keys <file>      a file with an answer of GET /v1/receipts/key, saved earlier or now
  --email <email>    also checks that the account had this email
  --json             prints only the content of the receipt, as JSON
  --help             this text

Exits 0 when it is genuine, 1 when it is not, 2 when it cannot be read.
`

/** @returns the exit code. */
function main(): number {
  const { values, positionals } = parseCommand(usage, {
    keys: { type: 'string' },
    email: { type: 'string' },
    json: { type: 'boolean' },
  })
  const [file] = positionals
  if (file === undefined || values.keys === undefined) {
    exitWithUsage(['Name a receipt, and the keys to check it with'], usage)
  }
  const receipt = verifyReceipt(extractReceipt(readFileSync(file, 'utf8')), readKeys(values.keys))
  if (!receipt)
    return reportFailure('This receipt is not genuine: none of the keys has signed it as it is')
  if (values.email !== undefined && emailProof(receipt.id, values.email) !== receipt.email_proof) {
    return reportFailure('The receipt is genuine, but it is that of another email')
  }
  const text = JSON.stringify(receipt, null, 2)
  process.stdout.write(values.json ? `${text}\n` : `The receipt is genuine. It says:\n${text}\n`)
  return 0
}

function reportFailure(sentence: string): number {
  process.stderr.write(`${sentence}\n`)
  return 1
}

function extractReceipt(text: string): string {
  if (!text.trimStart().startsWith('{')) return text
  const { receipt } = JSON.parse(text) as { receipt?: string | null }
  if (!receipt) throw new Error('the file has no receipt: the erasure may not be over yet')
  return receipt
}

const readKeys = (file: string): ReceiptKey[] =>
  (JSON.parse(readFileSync(file, 'utf8')) as { keys: ReceiptKey[] }).keys

try {
  process.exitCode = main()
} catch (error) {
  exitWithUsage([(error as Error).message], usage)
}
