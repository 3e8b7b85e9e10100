import { existsSync, readFileSync } from 'node:fs'
import t from 'tap'
import { ModelProvider } from '#scripts/lab/prove/model-provider.ts'
import { createTestBackend, createTestConfig } from '#test/support/start/backend.ts'
import { Fuzz } from '#test/support/checks/fuzz.ts'
import { openOperations, troubledJobs } from '#test/support/checks/observe-jobs.ts'
import { startWeb, startWorker } from '#test/support/start/processes.ts'
import { createTestService } from '#test/support/start/tenants.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

/** `FUZZ_SEED` repeats a run, `FUZZ_ROUNDS` is how many requests each route gets. */
const seed = Number(process.env.FUZZ_SEED ?? 20_261_126)
const rounds = Number(process.env.FUZZ_ROUNDS ?? 40)

t.setTimeout(0)
const provider = new ModelProvider()
const outside = { ...(await provider.listen()), WEBHOOK_LOOPBACK: 'on', LOG_LEVEL: 'warn' }
t.teardown(() => provider.close())
const config = await createTestConfig(t, outside)
const backend = await createTestBackend(t, { config })
const [web, worker] = await Promise.all([
  startWeb(t, config, outside),
  startWorker(t, config, outside),
])
const service = await createTestService(t, backend, { base: web.base, origin: provider.origin })

const residentMiB = (): number => {
  const statm = `/proc/${web.pid}/statm`
  return existsSync(statm) ? (Number(readFileSync(statm, 'utf8').split(' ')[1]) * 4) / 1024 : 0
}

t.test(`no request breaks a route: FUZZ_SEED=${seed} repeats these ${rounds} of each`, async t => {
  console.log(`# FUZZ_SEED=${seed} FUZZ_ROUNDS=${rounds}`)
  const fuzz = await Fuzz.create(service, config)
  await fuzz.run(seed, rounds / 2)
  const before = residentMiB()
  await fuzz.run(seed + 1e6, rounds / 2)
  t.same(Object.fromEntries(fuzz.faults), {})
  // The first half loads code, tables and caches; what the second adds would go on growing. Some of it
  // is garbage not yet collected: bodies that were kept would be far more.
  const grown = residentMiB() - before
  t.ok(grown < 150, `resident memory of ${before.toFixed(0)} MiB grew by ${grown.toFixed(0)} MiB`)
})

t.test('what was accepted can be stored, all of it, at the first try', async t => {
  const unsettled = () => openOperations(backend)
  await waitUntil('every operation is settled', async () => (await unsettled()).length === 0).catch(
    async (error: Error) => t.same(await unsettled(), [], error.message),
  )
  // The stand-in for models states no facts and rates no tags.
  t.same(await troubledJobs(backend, ['org-extract', 'org-tag-run']), [])
  // A machine that is busy with this may have MongoDB answer late; MCP's library warns of messages that are none.
  const lines = (web.output() + worker.output()).split('\n')
  const warnings = lines.filter(
    line =>
      line !== '' && !/"dependency":"mongodb"|org-(?:extract|pipeline)|mcp\.failed/.test(line),
  )
  t.same(warnings, [], 'nothing to warn about')
})
