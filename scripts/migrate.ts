import { release } from '#scripts/release.ts'
import { ConfigFault, readConfig } from '#shared/config.ts'
import { createLog } from '#shared/log.ts'

const help = `Usage: node scripts/migrate.ts

The release step: applies SQL migrations, brings the queue to this version and creates MongoDB
indexes. Run it before new processes start; running it again changes nothing.

Reads the same environment as the service; see the README.
`

if (process.argv.includes('--help')) {
  process.stdout.write(help)
} else {
  try {
    const config = readConfig(process.env)
    const applied = await release(config, createLog(config.logLevel, 'release'))
    process.stdout.write(`Migrations applied: ${applied.join(', ') || 'none, all were there'}\n`)
  } catch (error) {
    if (!(error instanceof ConfigFault)) throw error
    process.stderr.write(`${error.message}\n`)
    process.exitCode = 2
  }
}
