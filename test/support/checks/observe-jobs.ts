import type { Backend } from '#shared/backend.ts'
import type { JobName } from '#shared/domain/jobs.ts'
import { readColumn, readRows, readValue } from '#test/support/checks/observe.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

/** What tests read of operations, jobs, deliveries and stored answers; see `observe.ts`. */

type Postgres = Pick<Backend, 'postgres'>

/** How many operations of these vaults are accepted or running. */
export const countOpenOperations = (stores: Postgres, vaults: readonly string[]) =>
  readValue<number>(
    stores,
    `select count(*)::int as n from operations
     where vault = any($1) and state in ('accepted', 'running')`,
    [vaults],
  )

/** The state of an operation, or undefined when there is no such operation. */
export async function operationState(
  { postgres }: Postgres,
  id: string,
): Promise<string | undefined> {
  const { rows } = await postgres.query<{ state: string }>(
    'select state from operations where id = $1',
    [id],
  )
  return rows[0]?.state
}

/** The operations that are accepted or running, counted by kind and state. */
export async function openOperations({
  postgres,
}: Postgres): Promise<{ kind: string; state: string; count: number }[]> {
  const { rows } = await postgres.query<{ kind: string; state: string; count: number }>(
    `select kind, state, count(*)::int as count from operations
     where state in ('accepted', 'running') group by kind, state`,
  )
  return rows
}

/** How many operations of a kind there are, whatever their state. */
export const countOperationsOfKind = (stores: Postgres, kind: string) =>
  readValue<number>(stores, 'select count(*)::int as n from operations where kind = $1', [kind])

/** When an operation was finished. */
export const finishedAt = (stores: Postgres, operation: string) =>
  readValue<Date>(stores, 'select finished_at from operations where id = $1', [operation])

/** Waits until no exchange with a provider and no operation is open; kept steps of loops may remain. */
export const waitUntilIdle = ({ postgres }: Postgres): Promise<void> =>
  waitUntil('no exchange and no operation is open', async () => {
    const { rows } = await postgres.query<{ n: number }>(
      `select (select count(*) from open_exchanges where not step)::int
            + (select count(*) from operations where state in ('accepted', 'running'))::int as n`,
    )
    return rows[0]!.n === 0
  })

/** What a job is given. */
export async function jobData<Data>({ postgres }: Postgres, id: string): Promise<Data> {
  const read = 'select data from pgboss.job where id = $1'
  return (await postgres.query<{ data: Data }>(read, [id])).rows[0]!.data
}

export type Job<Data> = { id: string; state: string; priority: number; data: Data }

/** The jobs of a queue with their data, oldest first, completed ones included. */
export async function jobsOf<Data = Record<string, unknown>>(
  { postgres }: Postgres,
  queue: JobName,
): Promise<Job<Data>[]> {
  const { rows } = await postgres.query<Job<Data>>(
    'select id, state::text, priority, data from pgboss.job where name = $1 order by created_on, id',
    [queue],
  )
  return rows
}

/** The deliveries of a webhook, whatever their state. */
export const webhookDeliveriesOf = (stores: Postgres, webhook: string) =>
  readRows<{ event: string; data: Record<string, unknown> }>(
    stores,
    'select event, data from webhook_deliveries where webhook = $1 order by due_at, id',
    [webhook],
  )

/** The jobs of operations in a queue; dead letters are in another. */
export const jobIdsOf = (stores: Postgres, queue: JobName, operations: readonly string[]) =>
  readColumn<string>(
    stores,
    `select id from pgboss.job where name = $1 and data->>'operation' = any($2)`,
    [queue, operations],
  )

/** A job with its queue and whether it is due; undefined when it is gone. */
export async function jobRow(stores: Postgres, id: string) {
  const [row] = await readRows<{ name: string; state: string; due: boolean }>(
    stores,
    'select name, state, start_after <= now() as due from pgboss.job where id = $1',
    [id],
  )
  return row
}

/** How many jobs were given up, in all queues. */
export const countDeadLetters = (stores: Postgres) =>
  readValue<number>(stores, `select count(*)::int as n from pgboss.job where name like '%.dead'`)

/** The jobs that were tried more than once, that failed, or that were given up; three at most. */
export async function troubledJobs({ postgres }: Postgres, but: JobName[] = []): Promise<object[]> {
  const { rows } = await postgres.query(
    `select name, state, retry_count, output from pgboss.job
     where (retry_count > 0 or state = 'failed' or name like '%.dead') and name <> all ($1) limit 3`,
    [but],
  )
  return rows
}

/** How many jobs, of all queues but the sweep's, are not completed. */
export const countOpenJobs = (stores: Postgres) =>
  readValue<number>(
    stores,
    `select count(*)::int as n from pgboss.job
     where state <> 'completed' and name <> 'sweep' and name not like '\\_\\_pgboss%'`,
  )

/** How many turns of organizations are not finished, with the jobs that lead to them. */
export const countOpenTurns = (stores: Postgres) =>
  readValue<number>(
    stores,
    `select ((select count(*) from org_turns where finished_at is null)
           + (select count(*) from pgboss.job where state <> 'completed'
              and (name = 'ingest' or name like 'org-%')))::int as n`,
  )

/** The jobs that send a webhook delivery and are not completed. */
export const deliveryJobs = (stores: Postgres, delivery: string) =>
  readRows<{ state: string; inSeconds: number }>(
    stores,
    `select state, extract(epoch from start_after - now())::float8 as "inSeconds"
     from pgboss.job where name = 'webhook' and singleton_key = $1 and state < 'completed'`,
    [delivery],
  )

/** What is stored of a webhook delivery. */
export async function deliveryRow(
  { postgres }: Postgres,
  delivery: string,
): Promise<{ state: string; attempts: number; isDue: boolean }> {
  const { rows } = await postgres.query<{ state: string; attempts: number; isDue: boolean }>(
    `select state, attempts, due_at <= now() as "isDue" from webhook_deliveries where id = $1`,
    [delivery],
  )
  return rows[0]!
}

/** How many answers of model providers are stored for requests with an Idempotency-Key. */
export const countStoredModelAnswers = (stores: Postgres) =>
  readValue<number>(
    stores,
    `select count(*)::int as n from idempotency
     where answer is not null and route not like '%/memory/%' and route not like '%/account/%'`,
  )

/** Everything of jobs, open exchanges and staged lines whose content has a text, as JSON. */
export const queuedRowsWith = (stores: Postgres, text: string) =>
  readColumn<string>(
    stores,
    `select row_to_json(j)::text as row from pgboss.job j where data::text like $1
     union all select user_turn::text from open_exchanges where user_turn::text like $1
     union all select row_to_json(c)::text from operation_steps c where input::text like $1`,
    [`%${text}%`],
  )

/** The vault of an operation. */
export const vaultOfOperation = (stores: Postgres, operation: string) =>
  readValue<string>(stores, 'select vault from operations where id = $1', [operation])

/** How many steps of an operation are stored. */
export const countSteps = (stores: Postgres, operation: string) =>
  readValue<number>(
    stores,
    `select count(*)::int as n from operation_steps s join long_operations l on l.id = s.long_operation
     where l.operation = $1`,
    [operation],
  )

/** How many staged files of a vault belong to an operation. */
export const countAcceptedFiles = (stores: Postgres, vault: string) =>
  readValue<number>(
    stores,
    'select count(*)::int as n from long_operations where vault = $1 and operation is not null',
    [vault],
  )

/** How many rows of jobs were updated since the database was made; Postgres counts up to 10 s late. */
export async function jobUpdates({ postgres }: Pick<Backend, 'postgres'>): Promise<number> {
  const { rows } = await postgres.query<{ updates: number }>(
    `select sum(n_tup_upd)::int as updates from pg_stat_all_tables
     where schemaname = 'pgboss' and relname like 'job%'`,
  )
  return rows[0]!.updates
}
