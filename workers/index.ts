import { openBackend, type Backend } from '#shared/backend.ts'
import { readConfig } from '#shared/core/config.ts'
import { enter, serveUntilStopped } from '#shared/core/process-lifecycle.ts'
import { createLog } from '#shared/core/log.ts'
import { jobNames, type JobName } from '#shared/domain/jobs.ts'
import { watchOutbox } from '#shared/webhooks/deliver.ts'
import { handlers } from '#workers/handlers.ts'
import { watchWorker } from '#workers/watch.ts'

const asked = process.argv.slice(2)
if (asked.includes('--help')) {
  process.stdout.write(
    `Usage: node workers/index.ts [job …]\n\nTakes jobs from the queue until it is told to stop; without names, of every kind. Delivers webhooks too.\nWith METRICS_PORT it answers /metrics, /health/live and /health/ready there.\nJobs: ${jobNames.join(', ')}\n`,
  )
  process.exit(0)
}
const unknown = asked.filter(name => !jobNames.includes(name as JobName))
if (unknown.length > 0) {
  process.stderr.write(`No such job: ${unknown.join(', ')}. Jobs: ${jobNames.join(', ')}\n`)
  process.exit(2)
}
const names = asked.length > 0 ? (asked as JobName[]) : jobNames

await enter(async () => {
  const config = readConfig(process.env)
  const log = createLog(config.logLevel, 'worker')
  const backend = await openBackend(config, log, 'worker')
  const { metricsPort } = config
  // Before any job: a port that is taken ends this process.
  const watched = metricsPort === null ? null : await watchWorker(backend, metricsPort)
  if (watched) log.info({ port: watched.port, host: config.host }, 'worker.watched')
  for (const name of names) await takeJobs(backend, name)
  const outbox = await watchOutbox(backend)
  log.info({ jobs: names }, 'worker.taking')
  serveUntilStopped(log, async () => {
    watched?.drain()
    await outbox.close()
    await backend.close()
    await watched?.close()
  })
})

async function takeJobs<Name extends JobName>(backend: Backend, name: Name): Promise<void> {
  await backend.queue.work(name, batch => handlers[name](backend, batch))
}
