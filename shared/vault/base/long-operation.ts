import { recordDeferredBill } from '#shared/billing/bill.postgres.ts'
import { memoryIdOf } from '#shared/core/ids.ts'
import type { OperationOutcome } from '#shared/domain/operation-outcome.ts'
import type { DebtChange, PartitionChange } from '#shared/domain/vault-change.ts'
import { acceptOperation } from '#shared/operations/accept-operations.ts'
import {
  finishOperation,
  reportProgress,
  type NewOperation,
} from '#shared/operations/operations.postgres.ts'
import {
  dropLongOperation,
  insertLongOperation,
  insertSteps,
  markSettled,
  tallySteps,
  type LongOperationKind,
  type OperationStep,
  type StepCounts,
  type StepError,
  type StepTally,
} from '#shared/operations/operation-steps.postgres.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'
import type { NewJob, Queue } from '#shared/storage/queue/queue.ts'
import { changeVault } from '#shared/vault/base/vaults.postgres.ts'

/** The queue of the steps of a kind, and whether each is sent when the one before it is settled. */
const stepQueues = {
  upload: { name: 'upload', isSequential: false },
  import: { name: 'import', isSequential: true },
  transfer: { name: 'copy-chunk', isSequential: false },
  graft: { name: 'copy-chunk', isSequential: false },
  reembed: { name: 'reembed', isSequential: true },
  retention: { name: 'retention', isSequential: true },
} as const satisfies Record<LongOperationKind, { name: string; isSequential: boolean }>

/**
 * The jobs that an operation begins with, each with a lower priority than the one before.
 *
 * @param pending the vault's number of pending operations: lowers the priority
 */
export function firstStepJobs(
  { operation, kind, vault }: Pick<OperationStep, 'operation' | 'kind' | 'vault'>,
  numbers: readonly number[],
  pending: number,
): NewJob<(typeof stepQueues)[LongOperationKind]['name']>[] {
  const sent = stepQueues[kind].isSequential ? numbers.slice(0, 1) : numbers
  return sent.map((n, index) => stepJob({ operation, vault, n }, -(pending + index)))
}

const stepJob = (
  { operation, vault, n }: Pick<OperationStep, 'operation' | 'vault' | 'n'>,
  priority: number,
): NewJob<(typeof stepQueues)[LongOperationKind]['name']> => ({
  id: memoryIdOf(operation, n),
  data: { operation, vault, n },
  priority,
})

/**
 * Accepts an operation with its steps and first jobs. Accepting the same operation again changes nothing.
 *
 * @param target the vault that is written to, where that is not the vault of the request
 */
export async function acceptLongOperation(
  tx: Transaction,
  queue: Pick<Queue, 'send'>,
  operation: NewOperation & { kind: LongOperationKind },
  {
    target,
    request,
    inputs,
  }: { target?: { vault: string; epoch: number }; request: object; inputs: readonly object[] },
): Promise<void> {
  const { id, kind, vault } = operation
  await acceptOperation(tx, queue, {
    operation,
    queueName: stepQueues[kind].name,
    async jobs({ epoch, pending }) {
      const work = { id, operation: id, kind, request, ...(target ?? { vault, epoch }) }
      await insertLongOperation(tx.query, work)
      const steps = inputs.map((input, n) => ({ n, input }))
      await insertSteps(tx.query, id, steps)
      const numbers = steps.map(({ n }) => n)
      return firstStepJobs({ operation: id, kind, vault: work.vault }, numbers, pending)
    },
  })
}

export type StepResult<Step> = {
  counts: StepCounts
  errors?: readonly StepError[]
  /** Settles the step only when no run has planned it. */
  unplanned?: boolean
  /** The input of a step to add. */
  next?: object | null
  /** That of one more step, once all others are settled and none was cut. */
  last?: object | undefined
  /** What it changed in a vault: that of the step unless named. */
  changes?: readonly PartitionChange[]
  changed?: string
  debt?: DebtChange
  /** The whole of the operation's progress, where it is known now. */
  total?: number | undefined
  progress: (tally: StepTally) => number
  summarize: (tally: StepTally, step: Step) => OperationOutcome
}

/**
 * Settles a step once, however often it runs: makes its changes visible, and sends the next step or ends the
 * operation with outcome and bill. The caller has locked the vaults (`lockVaults`).
 *
 * @returns false, with nothing written, when it was settled before or its operation has ended.
 */
export async function settleStep<Step extends OperationStep>(
  tx: Transaction,
  queue: Pick<Queue, 'send'>,
  step: Step,
  result: StepResult<Step>,
): Promise<boolean> {
  const { id, operation, kind, n } = step
  if (!(await markSettled(tx.query, step, result))) return false
  if (result.next) await insertSteps(tx.query, id, [{ n: n + 1, input: result.next }])
  const { changes = [], changed = step.vault, total } = result
  if (changes.length > 0) await changeVault(tx, changed, changes, result.debt, queue)
  const tally = await tallySteps(tx.query, id)
  const progress = { done: result.progress(tally), ...(total !== undefined && { total }) }
  await reportProgress(tx.query, operation, progress)
  const last = tally.next === null && !tally.counts.cut ? result.last : undefined
  if (last) await insertSteps(tx.query, id, [{ n: tally.steps, input: last }])
  if (tally.next === null && !last) {
    const request = await dropLongOperation(tx.query, operation)
    const { tokens = 0, cut = 0 } = tally.counts
    await recordDeferredBill(tx, operation, tokens)
    const outcome = result.summarize(tally, { ...step, ...request })
    await finishOperation(tx, queue, operation, outcome, cut > 0 ? 'cancelled' : 'done')
  } else if (last || stepQueues[kind].isSequential) {
    // The more steps are settled, the longer the rest waits for others.
    const job = stepJob({ ...step, n: tally.next ?? tally.steps }, -tally.settled)
    await queue.send(tx, stepQueues[kind].name, [job])
  }
  return true
}

/** Ends an operation before its last step. */
export async function endLongOperation(
  tx: Transaction,
  queue: Pick<Queue, 'send'>,
  operation: string,
  outcome: OperationOutcome,
): Promise<void> {
  await finishOperation(tx, queue, operation, outcome)
  await dropLongOperation(tx.query, operation)
}
