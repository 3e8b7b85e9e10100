import type { AddressInfo } from 'node:net'
import { compileRequestShapes } from '#api/contract/document.ts'
import { createApp } from '#api/app.ts'
import { createHttpServer } from '#api/edge/server.ts'
import { openBackend } from '#shared/backend.ts'
import { readConfig } from '#shared/core/config.ts'
import { runInSlices } from '#shared/core/event-loop.ts'
import { runMain, runUntilStopped } from '#shared/core/process-lifecycle.ts'
import { createLog } from '#shared/core/log.ts'
import { startTelemetry } from '#shared/core/telemetry/start.ts'
import { createGaugeSampler } from '#shared/operations/collect-metrics.ts'
import { countFaultyPipelines } from '#shared/org/base/pipeline-state.postgres.ts'
import { buildRelatedTerms } from '#shared/search/words/related-terms.ts'
import { countTokens } from '#shared/core/tokens.ts'

/** Less than the whole process has, so that the stores are closed in good order after it. */
const drainMs = 20_000

await runMain(async () => {
  const config = readConfig(process.env)
  const telemetry = await startTelemetry(config.telemetry, 'web')
  const log = createLog(config.logLevel, 'web', telemetry?.logStream)
  const backend = await openBackend(config, log, 'web')
  telemetry?.attach(log, createGaugeSampler(backend, countFaultyPipelines))
  const server = createHttpServer(createApp(backend), {
    pendingPerAddress: config.pendingPerAddress,
  })

  // Loads the tables in one piece: before `listen`, so that no request waits for them.
  countTokens('ready')

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(config.port, config.host, resolve)
  })
  // Port 0 asks the kernel for a free one.
  const { port } = server.address() as AddressInfo
  log.info({ port, host: config.host }, 'web.listening')
  runUntilStopped(
    log,
    async () => {
      await server.drain(drainMs)
      await backend.close()
      await telemetry?.stop()
    },
    { port, isServing: () => server.serving },
  )
  // What the first requests would wait for, in slices: after `listen`, since the probes of a start do not wait.
  await runInSlices(buildRelatedTerms())
  await backend.embedders.load()
  log.debug({ schemas: await runInSlices(compileRequestShapes()) }, 'web.schemas-compiled')
}, process.env)
