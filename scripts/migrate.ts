import { parseOptions } from '#scripts/command-line.ts'
import { release } from '#scripts/release.ts'
import { readConfig } from '#shared/core/config.ts'
import { runMain } from '#shared/core/process-lifecycle.ts'
import { createLog } from '#shared/core/log.ts'

const help = `Usage: npm run migrate

The release step: applies SQL migrations, updates the schema of the queue and creates MongoDB
indexes. Run it before new processes start; a second run changes nothing.

  --help  this text

Reads the same environment as the service; see the README. Exit code: 0 when it was done, 1 when it
could not be, 2 for wrong options.
`

parseOptions(help, {})
await runMain(async () => {
  const config = readConfig(process.env)
  const { applied, found } = await release(config, createLog(config.logLevel, 'release'))
  process.stdout.write(`${found}\n`)
  process.stdout.write(`Migrations applied: ${applied.join(', ') || 'none, all were there'}\n`)
}, process.env)
