import { openBackend, type Backend } from '#shared/backend.ts'
import { readConfig } from '#shared/core/config.ts'
import { runMain, runUntilStopped } from '#shared/core/process-lifecycle.ts'
import { createLog } from '#shared/core/log.ts'
import { startTelemetry } from '#shared/core/telemetry/start.ts'
import { createGaugeSampler } from '#shared/operations/collect-metrics.ts'
import { countFaultyPipelines } from '#shared/org/base/pipeline-state.postgres.ts'
import { jobNames, type JobName } from '#shared/domain/jobs.ts'
import { jobHandlers } from '#workers/handlers.ts'
import { serveHealth } from '#workers/health-server.ts'

const requestedNames = process.argv.slice(2)
if (requestedNames.includes('--help')) {
  process.stdout.write(
    `Usage: node workers/index.ts [job …]\n\nTakes jobs from the queue until it is told to stop; without names, of every kind.\nWith METRICS_PORT it answers /metrics, /health/live and /health/ready there.\nJobs: ${jobNames.join(', ')}\n`,
  )
  process.exit(0)
}
const unknownNames = requestedNames.filter(name => !jobNames.includes(name as JobName))
if (unknownNames.length > 0) {
  process.stderr.write(`No such job: ${unknownNames.join(', ')}. Jobs: ${jobNames.join(', ')}\n`)
  process.exit(2)
}
const jobsToTake = requestedNames.length > 0 ? (requestedNames as JobName[]) : jobNames

await runMain(async () => {
  const config = readConfig(process.env)
  const telemetry = await startTelemetry(config.telemetry, 'worker')
  const log = createLog(config.logLevel, 'worker', telemetry?.logStream)
  const backend = await openBackend(config, log, 'worker')
  telemetry?.attach(log, createGaugeSampler(backend, countFaultyPipelines))
  const { metricsPort } = config
  // Before any job: a port that is in use ends this process.
  const healthServer = metricsPort === null ? null : await serveHealth(backend, metricsPort)
  if (healthServer) log.info({ port: healthServer.port, host: config.host }, 'worker.watched')
  for (const name of jobsToTake) await takeJobs(backend, name)
  log.info({ jobs: jobsToTake }, 'worker.taking')
  runUntilStopped(log, async () => {
    healthServer?.drain()
    await backend.close()
    await healthServer?.close()
    await telemetry?.stop()
  })
}, process.env)

async function takeJobs<Name extends JobName>(backend: Backend, name: Name): Promise<void> {
  await backend.queue.work(name, batch => jobHandlers[name](backend, batch))
}
