import { parseOptions } from '#scripts/command-line.ts'
import { embeddedEnvironment } from '#scripts/embedded-environment.ts'
import { ConfigError, readConfig, type Config } from '#shared/core/config.ts'
import { Refusal } from '#shared/core/errors.ts'
import { startupErrorMessage } from '#shared/core/process-lifecycle.ts'
import {
  reconcileStores,
  neededRepair,
  type VaultReconciliation,
} from '#shared/vault/restore/reconcile-stores.ts'
import { openMongo } from '#shared/storage/mongo/connect.ts'
import { openPostgres } from '#shared/storage/postgres/connect.ts'
import { pendingMigrations } from '#shared/storage/postgres/migrate.ts'

const help = `Usage: npm exec -- node scripts/after-restore.ts [--dry-run] [--json]

Brings Postgres in line with MongoDB after one of them was restored from a backup: memories stored after
the backup of Postgres become visible again, cleared ones do not; the counts of what waits for
consolidation are corrected; vault indexes in memory are dropped. Run it after the release step.

  --dry-run  changes nothing and prints what would be changed
  --json     prints JSON: totals, and every vault that was behind
  --help     this text

A second run changes nothing, and the service may run at the same time. Reads the same environment as the
service; without DATABASE_URL it works on the embedded services of DATA_DIR while "npm start" is running.

Exits 0 when all is done, 1 when a database is out of reach, when the release step has not run, or when
the counts of some vaults were skipped because jobs are running there.
`

const options = parseOptions(help, {
  'dry-run': { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
})

try {
  process.exitCode = await main(readConfig(embeddedEnvironment(process.env) ?? process.env))
} catch (error) {
  if (!(error instanceof ConfigError) && !(error instanceof Refusal)) throw error
  process.stderr.write(`${startupErrorMessage(error, process.env)}\n`)
  process.exitCode = error instanceof ConfigError ? 2 : 1
}

/** @returns the exit code. */
async function main({ databaseUrl, mongodbUri }: Config): Promise<number> {
  const dryRun = options['dry-run']
  const postgres = openPostgres(databaseUrl, { max: 8, onError: () => {} })
  try {
    const pending = await pendingMigrations(postgres.query)
    if (pending.length > 0) {
      throw new Refusal('unavailable', 'Run the release step first: npm run migrate')
    }
    const mongo = await openMongo(mongodbUri)
    try {
      const totals = { vaults: 0, behind: 0, busy: 0 }
      const behind: VaultReconciliation[] = []
      await reconcileStores({ postgres, mongo }, { dryRun }, vault => {
        totals.vaults++
        if (vault.busy) totals.busy++
        if (!neededRepair(vault)) return
        totals.behind++
        if (options.json) behind.push(vault)
        else process.stdout.write(formatVault(vault))
      })
      const output = options.json ? formatJson(totals, behind) : formatSummary(totals)
      process.stdout.write(output)
      return totals.busy > 0 ? 1 : 0
    } finally {
      await mongo.close()
    }
  } finally {
    await postgres.close()
  }
}

type ReconcileTotals = { vaults: number; behind: number; busy: number }

function formatJson(totals: ReconcileTotals, behind: readonly VaultReconciliation[]): string {
  const vaults = behind.map(({ vault, epoch, sessions, waiting, leftovers }) => ({
    vault,
    newer_epoch: epoch.before !== epoch.after,
    sessions,
    raw_units: { before: waiting.before.rawUnits, after: waiting.after.rawUnits },
    raw_tokens: { before: waiting.before.rawTokens, after: waiting.after.rawTokens },
    tier2_count: { before: waiting.before.tier2Count, after: waiting.after.tier2Count },
    leftovers,
  }))
  return `${JSON.stringify({ dry_run: options['dry-run'], ...totals, changed: vaults })}\n`
}

function formatVault({ vault, epoch, sessions, waiting, leftovers }: VaultReconciliation): string {
  const { before, after } = waiting
  const parts = [
    epoch.before !== epoch.after && 'cleared and used since',
    sessions > 0 && `sessions behind: ${sessions}`,
    before.rawUnits !== after.rawUnits && `raw units ${before.rawUnits} -> ${after.rawUnits}`,
    before.rawTokens !== after.rawTokens && `raw tokens ${before.rawTokens} -> ${after.rawTokens}`,
    before.tier2Count !== after.tier2Count &&
      `reflections ${before.tier2Count} -> ${after.tier2Count}`,
    leftovers && 'cleared memories that are left in MongoDB are being removed',
  ]
  return `vault ${vault}: ${parts.filter(part => part !== false).join(', ')}\n`
}

function formatSummary({ vaults, behind, busy }: ReconcileTotals): string {
  const verb = options['dry-run'] ? 'would be put right' : 'put right'
  const later =
    busy > 0 ? `${busy} have running jobs; their counts were skipped: run this again later.\n` : ''
  return `${vaults} vaults looked at, ${behind} ${verb}.\n${later}`
}
