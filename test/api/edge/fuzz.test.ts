import t from 'tap'
import { ModelProvider } from '#scripts/lab/prove/model-provider.ts'
import { startJobWorkers, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { Fuzz } from '#test/support/checks/fuzz.ts'
import { openOperations, troubledJobs } from '#test/support/checks/observe-jobs.ts'
import { createTestService } from '#test/support/start/tenants.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

/** Requests to each route; `fuzz.long.test.ts` sends more of them, and others each time. */
const rounds = 6

const provider = new ModelProvider()
const backend = await createTestBackend(t, {
  env: { ...(await provider.listen()), WEBHOOK_LOOPBACK: 'on' },
})
t.teardown(() => provider.close())
await startJobWorkers(backend)
const { base } = await startTestApi(t, backend)
const service = await createTestService(t, backend, { base, origin: provider.origin })

t.test(`no request breaks a route: ${rounds} of each`, async t => {
  const fuzz = await Fuzz.create(service, backend.config)
  await fuzz.run(20_261_120, rounds)
  t.same(Object.fromEntries(fuzz.faults), {})
  t.ok(fuzz.statuses[200]! > 100 && fuzz.statuses[202]! > 0, 'some of it was good')
})

t.test('what was accepted can be stored, all of it, at the first try', async t => {
  const unsettled = () => openOperations(backend)
  await waitUntil('every operation is settled', async () => (await unsettled()).length === 0).catch(
    async (error: Error) => t.same(await unsettled(), [], error.message),
  )
  // The stand-in for models tells no facts.
  t.same(await troubledJobs(backend, ['org-extract']), [])
})
