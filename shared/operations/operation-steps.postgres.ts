import { reportedErrorsMax } from '#shared/domain/file-types.ts'
import type { FailureReason } from '#shared/domain/operation-outcome.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'

/** Operations that are done in steps, one job each. */
export type LongOperationKind = 'upload' | 'import' | 'transfer' | 'graft' | 'reembed' | 'retention'

export type StepCounts = Record<string, number>

export type StepError = {
  error: string
  /** The line of a file. */
  line?: number
  reason?: FailureReason
}

/** A step of an operation that has not ended, with the fields of its request and of its input. */
export type OperationStep<Request = object, Input = object, Plan = unknown> = Request &
  Input & {
    /** The id of the long operation. */
    id: string
    operation: string
    kind: LongOperationKind
    account: string
    /** The key of the request, masked, and its hash. */
    key: string
    keyHash: Buffer
    createdAt: Date
    vault: string
    epoch: number
    n: number
    plan: Plan | null
    isCancelled: boolean
  }

export async function insertLongOperation(
  query: Query,
  longOperation: {
    /** The operation; of a file an id of its own. */
    id: string
    /** Null while a file arrives. */
    operation: string | null
    kind: LongOperationKind
    /** The vault that is written to, and its epoch when the work was accepted. */
    vault: string
    epoch: number | null
    request: object
  },
): Promise<void> {
  const { id, operation, kind, vault, epoch, request } = longOperation
  await query(
    `insert into long_operations (id, operation, kind, vault, epoch, request)
     values ($1, $2, $3, $4, $5, $6)`,
    [id, operation, kind, vault, epoch, JSON.stringify(request)],
    'steps.begin',
  )
}

/** @param commit `off` where losing the rows in a crash does no harm */
export async function insertSteps(
  query: Query,
  id: string,
  steps: readonly {
    n: number
    input: object
    sessions?: readonly string[]
    counts?: StepCounts
    errors?: readonly StepError[]
  }[],
  commit?: 'off',
): Promise<void> {
  const items = steps.map(({ sessions = [], counts = {}, errors = [], ...step }) => ({
    ...step,
    sessions,
    counts,
    errors,
  }))
  await query(
    `with durability as (
       select set_config('synchronous_commit', coalesce($3, current_setting('synchronous_commit')), true)
     )
     insert into operation_steps (long_operation, n, input, sessions, counts, errors)
     select $1, s.n, s.input, s.sessions, s.counts, s.errors
     from durability, json_to_recordset($2::json)
       as s(n int, input json, sessions text[], counts jsonb, errors json)`,
    [id, JSON.stringify(items), commit ?? null],
    'steps.insert',
  )
}

const isOpen = `o.state in ('accepted', 'running', 'failed')`

/** A step that is still to be done; undefined when it is settled or its operation has ended. */
export async function findStep<Step extends OperationStep>(
  query: Query,
  operation: string,
  n: number,
): Promise<Step | undefined> {
  const { rows } = await query<OperationStep & { request: object; input: object }>(
    `select l.id, l.operation, l.kind, o.account, coalesce(k.masked, '') as key, o.key_hash as "keyHash",
            l.created_at as "createdAt", l.vault, l.epoch, s.n, s.plan,
            l.cancelled_at is not null as "isCancelled", l.request, s.input
     from long_operations l
     join operation_steps s on s.long_operation = l.id
     join operations o on o.id = l.operation and ${isOpen}
     left join memory_keys k on k.hash = o.key_hash
     where l.operation = $1 and s.n = $2 and not s.settled`,
    [operation, n],
    'steps.find',
  )
  if (!rows[0]) return undefined
  const { request, input, ...row } = rows[0]
  return { ...row, ...request, ...input } as Step
}

type StepKey = Pick<OperationStep, 'id' | 'n'>

/**
 * Saves the plan of a step before its first write.
 *
 * @returns the plan to follow: the first one saved, when two workers run the same step.
 */
export async function savePlan<Plan>(query: Query, { id, n }: StepKey, plan: Plan): Promise<Plan> {
  const { rows } = await query<{ plan: Plan }>(
    `update operation_steps set plan = coalesce(plan, $3)
     where long_operation = $1 and n = $2 and not settled returning plan`,
    [id, n, JSON.stringify(plan)],
    'steps.plan',
  )
  return rows[0]?.plan ?? plan
}

/** Replaces a saved plan. */
export async function updatePlan(query: Query, { id, n }: StepKey, plan: unknown): Promise<void> {
  await query(
    `update operation_steps set plan = $3 where long_operation = $1 and n = $2 and not settled`,
    [id, n, JSON.stringify(plan)],
    'steps.replan',
  )
}

/**
 * Settles a step with its counts, which are added to those it was stored with, and removes its input.
 *
 * @param unplanned only when no run has planned it
 * @returns false when it was settled before or its operation has ended: its effects must not count twice.
 */
export async function markSettled(
  query: Query,
  { id, n }: StepKey,
  {
    counts,
    errors,
    unplanned = false,
  }: { counts: StepCounts; errors?: readonly StepError[]; unplanned?: boolean },
): Promise<boolean> {
  const { rowCount } = await query(
    `update operation_steps s
     set settled = true, input = null, plan = null, counts = s.counts || $3::jsonb,
         errors = coalesce($4, s.errors)
     from long_operations l join operations o on o.id = l.operation and ${isOpen}
     where l.id = $1 and s.long_operation = l.id and s.n = $2 and not s.settled
       and not ($5 and s.plan is not null)`,
    [id, n, JSON.stringify(counts), errors ? JSON.stringify(errors) : null, unplanned],
    'steps.settle',
  )
  return rowCount === 1
}

export type StepTally = {
  steps: number
  settled: number
  /** The first step that is not settled. */
  next: number | null
  /** Sums over the settled steps. */
  counts: StepCounts
  /** The first ones, in the order of lines and steps. */
  errors: StepError[]
}

export async function tallySteps(query: Query, id: string): Promise<StepTally> {
  const { rows } = await query<StepTally>(
    `select count(*)::int as steps, (count(*) filter (where settled))::int as settled,
            min(n) filter (where not settled) as next,
            (select coalesce(jsonb_object_agg(name, total), '{}') from (
               select c.name, sum(c.value::numeric) as total
               from operation_steps s, jsonb_each_text(s.counts) c(name, value)
               where s.long_operation = $1 and s.settled group by c.name) sums) as counts,
            (select coalesce(json_agg(error), '[]') from (
               select e.error from operation_steps s, json_array_elements(s.errors) as e(error)
               where s.long_operation = $1
               order by (e.error->>'line')::int, s.n limit ${reportedErrorsMax}) first) as errors
     from operation_steps where long_operation = $1`,
    [id],
    'steps.tally',
  )
  return rows[0]!
}

/**
 * Deletes the steps of an operation that has ended.
 *
 * @returns what was asked for: a clearing may have erased texts of it; undefined when it was deleted before.
 */
export async function dropLongOperation(
  query: Query,
  operation: string,
): Promise<object | undefined> {
  const { rows } = await query<{ request: object }>(
    'delete from long_operations where operation = $1 returning request',
    [operation],
    'steps.drop',
  )
  return rows[0]?.request
}

/** A step of a file or a copy that may have written without being settled. */
export type UnsettledStep = {
  kind: LongOperationKind
  vault: string
  input: unknown
  plan: unknown
}

/**
 * Unsettled steps of a file or a copy. None when the vault that asked has sent another file or copy since,
 * which was not cancelled.
 *
 * @returns with `input` for copies only
 */
export async function unsettledSteps(query: Query, operation: string): Promise<UnsettledStep[]> {
  const { rows } = await query<UnsettledStep>(
    `select l.kind, l.vault, s.plan, case when l.kind in ('transfer', 'graft') then s.input end as input
     from long_operations l
     join operation_steps s on s.long_operation = l.id
     join operations o on o.id = l.operation
     where l.operation = $1 and not s.settled and l.kind in ('upload', 'import', 'transfer', 'graft')
       and not exists (
         select from operations n where n.vault = o.vault and n.id > o.id and n.state <> 'cancelled'
           and n.kind in ('upload', 'import', 'transfer', 'graft'))`,
    [operation],
    'steps.unsettled',
  )
  return rows
}
