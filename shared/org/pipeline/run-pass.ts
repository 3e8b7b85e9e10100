import { Refusal } from '#shared/core/errors.ts'
import { isAboutPrompt } from '#shared/models/completion-model.ts'
import type { Log } from '#shared/core/log.ts'
import { UnusableAnswer } from '#shared/org/pipeline/cached-completion.ts'
import {
  clearFault,
  findPipelineGate,
  wakePipeline,
  recordFault,
  returnProbe,
  claimProbe,
} from '#shared/org/base/pipeline-state.postgres.ts'
import { findTurn } from '#shared/org/base/org-turns.postgres.ts'
import { splitBatch } from '#shared/org/pipeline/turn-batches.postgres.ts'
import type { OrgTurnJob } from '#shared/domain/job-payloads.ts'
import type { Postgres, Query } from '#shared/storage/postgres/connect.ts'
import type { Snooze } from '#shared/storage/queue/job-outcome.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { JobName } from '#shared/domain/jobs.ts'

export type PassName = 'org-extract' | 'org-tag' | 'org-reconcile'

type PassBackend = { postgres: Postgres; queue: Queue; log: Log }
type PassJob = { name: PassName; data: OrgTurnJob; signal: AbortSignal }

/**
 * Runs one pass of an organization unless its pipeline rests: when the admin has paused it, when the tokens of the
 * day are spent, and after a fault of its provider. That costs no try: one job at a time probes the provider after
 * 2, 4, 8 … 60 seconds. A process probes four organizations at once in each pass: those that hang leave places free.
 *
 * @returns a snooze, or undefined when the job is done or its turn is gone.
 * @throws as `run` does, where the fault is not the provider's.
 */
export async function runPass(
  backend: PassBackend,
  job: PassJob,
  run: () => Promise<Snooze | undefined | void>,
): Promise<Snooze | undefined> {
  const { name, data } = job
  const { query } = backend.postgres
  const gate = await findPipelineGate(query, data.org)
  if (gate?.paused) return { snoozeSeconds: spread(300, 900) }
  if (gate?.overBudget) return { snoozeSeconds: gate.dayLeft + spread(1, 60) }
  if (!gate?.faulty) return runOpenPass(backend, job, run, false)
  if (!(await startProbe(query, name, data.org))) {
    const probeSeconds = Math.min(60, 2 ** gate.probes)
    return { snoozeSeconds: spread(probeSeconds, 10 * probeSeconds) }
  }
  try {
    return await runOpenPass(backend, job, run, true)
  } finally {
    endProbe(name)
  }
}

/**
 * Runs a pass of a pipeline that does not rest, or whose probe it has claimed.
 *
 * | Outcome of `run` | Probe | Batch | Returned |
 * |---|---|---|---|
 * | done | ends the fault and wakes the other jobs | | undefined |
 * | snooze | due again | | that snooze |
 * | the provider refuses the prompt | due again | split | a snooze: other turns are not held up |
 * | any other fault of the provider | counted: the next one is later | | a snooze up to it |
 * | any other error | stays claimed | split, unless stopped | throws it |
 */
async function runOpenPass(
  backend: PassBackend,
  { name, data, signal }: PassJob,
  run: () => Promise<Snooze | undefined | void>,
  isProbe: boolean,
): Promise<Snooze | undefined> {
  const { org, turn } = data
  const { query } = backend.postgres
  let snooze: Snooze | undefined
  try {
    snooze = (await run()) ?? undefined
  } catch (error) {
    if (!isProviderFault(error)) {
      if (!signal.aborted) await splitFailedBatch(backend, name, data)
      throw error
    }
    if (!(await findTurn(query, turn))) return undefined
    backend.log.warn({ err: error, org }, 'org-pipeline.fault')
    // It may be one turn of a batch.
    if (isAboutPrompt(error)) {
      if (isProbe) await returnProbe(query, org)
      const otherTurns = await splitFailedBatch(backend, name, data)
      return { snoozeSeconds: otherTurns > 0 ? 1 : spread(60, 300) }
    }
    return { snoozeSeconds: await recordFault(query, org, error.message) }
  }
  if (snooze) {
    if (isProbe) await returnProbe(query, org)
    return snooze
  }
  if (isProbe && (await clearFault(query, org))) {
    backend.log.info({ org }, 'org-pipeline.recovered')
    await wakePipeline(query, org)
  }
  return undefined
}

/**
 * Splits a batch, so that its turns go on one by one and the faulty one fails alone.
 *
 * @returns the number of other turns
 */
const splitFailedBatch = (
  { postgres, queue }: PassBackend,
  name: PassName,
  { org, turn: leader }: OrgTurnJob,
): Promise<number> =>
  postgres.transaction(async tx => {
    const turns = await splitBatch(tx, leader)
    if (turns.length === 0 || name === 'org-extract') return turns.length
    const jobs = turns.map(turn => {
      return { id: turn, data: { turn, org }, priority: 0, key: turn, group: org }
    })
    await queue.send(tx, name, jobs)
    return turns.length
  })

/** Waiting jobs must not all wake at once. */
const spread = (from: number, to: number): number => from + Math.random() * (to - from)

/** `invalid`: there is no key to ask with. */
const isProviderFault = (error: unknown): error is Refusal =>
  error instanceof Refusal &&
  !(error instanceof UnusableAnswer) &&
  (error.reason === 'upstream' || error.reason === 'invalid' || error.reason === 'limited')

/** Probes that this process runs at once, by pass: with a provider that hangs each takes minutes. */
const probesMax = 4
const running = new Map<JobName, number>()

/**
 * Claims the probe of an organization for one pass of one process.
 *
 * @returns false when it is not due, or this process runs its share of probes; else call `endProbe` afterwards.
 */
async function startProbe(query: Query, name: JobName, org: string): Promise<boolean> {
  const count = running.get(name) ?? 0
  if (count >= probesMax) return false
  running.set(name, count + 1)
  let isClaimed = false
  try {
    isClaimed = await claimProbe(query, org)
    return isClaimed
  } finally {
    if (!isClaimed) endProbe(name)
  }
}

const endProbe = (name: JobName): void => void running.set(name, running.get(name)! - 1)
