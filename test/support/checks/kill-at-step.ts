import type { Test } from 'tap'
import type { Backend } from '#shared/backend.ts'
import { buildKey, startJobWorkers, startTestApi } from '#test/support/start/api.ts'
import { missHeartbeats } from '#test/support/checks/alter-jobs.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { launchProcess, processEnvironment, startProcess } from '#test/support/start/processes.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

/** A work that `kill -9` interrupts; the key of its row in a table says what is promised. */
export type Work = {
  /** Which process is killed. */
  killed: 'api' | 'worker'
  /** Workers run from the start in the process of the test. Without, they start when the last process is dead. */
  working?: true
  /** A dead worker is noticed by its heartbeats; without, the time that takes is passed in the database. */
  hasHeartbeats?: true
  /** Begins the work. */
  begin(t: Test, open: OpenScene): Promise<BegunWork>
}

type BegunWork = {
  /** For each process that is started and killed, in their order. */
  steps: Step[]
  /** What must be true when others do what the killed ones left. */
  afterwards(): Promise<void>
}

type Step = {
  /** In place of the whole process, what runs a part of its work. */
  program?: string
  /** Where the process kills itself, as crashing-process.ts has it. Without it, it is killed when `during` is over. */
  at?: string
  /** What comes before its process is started. */
  before?: () => Promise<void>
  /** What is asked of an API, by its URL, or awaited of a worker; with `at` its answer is lost. */
  during?: (base: string) => Promise<unknown> | void
}

/** Databases, and an API that is not killed. */
export type Scene = {
  backend: Backend
  base: string
  newKey(): Promise<string>
}

/** `env` is of all processes of the scene. */
type OpenScene = (env?: Record<string, string>) => Promise<Scene>

/** Runs a table of works: each is begun, its processes are killed, and others finish it. */
export function killAtSteps(t: Test, works: Record<string, Work>): void {
  for (const [promise, work] of Object.entries(works)) {
    t.test(promise, { buffered: true }, async t => {
      let kill = async (_step: Step): Promise<void> => {}
      let finish = async (): Promise<void> => {}
      const { steps, afterwards } = await work.begin(t, async (env = {}) => {
        const backend = await createTestBackend(t, { env })
        const { base } = await startTestApi(t, backend)
        kill = step => killOne(t, backend, work, { env, step })
        if (work.working) await startJobWorkers(backend)
        else finish = () => startJobWorkers(backend)
        return { backend, base, newKey: () => buildKey(backend) }
      })
      for (const step of steps) await kill(step)
      await finish()
      await afterwards()
    })
  }
}

const programs = { api: 'node api/index.ts', worker: 'node workers/index.ts' }

/** Starts a process and has it die; a job that it had is found by the next worker. */
async function killOne(
  t: Test,
  backend: Backend,
  { killed, hasHeartbeats }: Work,
  {
    env,
    step: { program = programs[killed], at, before, during },
  }: { env: Record<string, string>; step: Step },
): Promise<void> {
  await before?.()
  const crashing = new URL('crashing-process.ts', import.meta.url).href
  const own = processEnvironment(backend.config, {
    ...env,
    ...(at && { KILL_AT: at, NODE_OPTIONS: `--import=${crashing}` }),
  })
  const isAwaited = killed === 'api' || !at
  const doomed = isAwaited ? await startProcess(t, program, own) : launchProcess(t, program, own)
  const asked = during?.('base' in doomed ? (doomed.base as string) : '')
  const isLost = asked?.then(
    () => false,
    () => true,
  )
  if (!at) {
    await asked
    doomed.kill('SIGKILL')
  }
  let signal: string | null | undefined
  void doomed.exited.then(exit => (signal = exit.signal))
  await waitUntil(`it dies ${at ?? ''}`, () => signal !== undefined)
  t.equal(signal, 'SIGKILL', `it died ${at ?? ''} ${signal ? '' : doomed.output()}`)
  if (at && asked) t.ok(await isLost, 'the answer is lost with the process')
  if (killed === 'worker' && !hasHeartbeats) await missHeartbeats(backend)
}
