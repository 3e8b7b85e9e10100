import type { Backend } from '#shared/backend.ts'
import type { JobName } from '#shared/domain/jobs.ts'
import { waitUntil } from '#test/support/wait-until.ts'

/** What tests read of operations, jobs, deliveries and stored answers; see `observe.ts`. */

type Postgres = Pick<Backend, 'postgres'>

/** How many operations of these vaults are accepted or running. */
export async function countOpenOperations(
  { postgres }: Postgres,
  vaults: readonly string[],
): Promise<number> {
  const { rows } = await postgres.query<{ n: number }>(
    `select count(*)::int as n from operations
     where vault = any($1) and state in ('accepted', 'running')`,
    [vaults],
  )
  return rows[0]!.n
}

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
export async function countOperationsOfKind({ postgres }: Postgres, kind: string): Promise<number> {
  const { rows } = await postgres.query<{ n: number }>(
    'select count(*)::int as n from operations where kind = $1',
    [kind],
  )
  return rows[0]!.n
}

/** When an operation was finished. */
export async function finishedAt({ postgres }: Postgres, operation: string): Promise<Date> {
  const { rows } = await postgres.query<{ finished_at: Date }>(
    'select finished_at from operations where id = $1',
    [operation],
  )
  return rows[0]!.finished_at
}

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
export async function webhookDeliveriesOf(
  { postgres }: Postgres,
  webhook: string,
): Promise<{ event: string; data: Record<string, unknown> }[]> {
  const { rows } = await postgres.query<{ event: string; data: Record<string, unknown> }>(
    'select event, data from webhook_deliveries where webhook = $1 order by due_at, id',
    [webhook],
  )
  return rows
}

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
export async function countOpenJobs({ postgres }: Postgres): Promise<number> {
  const { rows } = await postgres.query<{ n: number }>(
    `select count(*)::int as n from pgboss.job
     where state <> 'completed' and name <> 'sweep' and name not like '\\_\\_pgboss%'`,
  )
  return rows[0]!.n
}

/** How many turns of organizations are not finished, with the jobs that lead to them. */
export async function countOpenTurns({ postgres }: Postgres): Promise<number> {
  const { rows } = await postgres.query<{ n: number }>(
    `select ((select count(*) from org_turns where finished_at is null)
           + (select count(*) from pgboss.job where state <> 'completed'
              and (name = 'ingest' or name like 'org-%')))::int as n`,
  )
  return rows[0]!.n
}

/** The jobs that send a webhook delivery and are not completed. */
export async function deliveryJobs(
  { postgres }: Postgres,
  delivery: string,
): Promise<{ state: string; inSeconds: number }[]> {
  const { rows } = await postgres.query<{ state: string; inSeconds: number }>(
    `select state, extract(epoch from start_after - now())::float8 as "inSeconds"
     from pgboss.job where name = 'webhook' and singleton_key = $1 and state < 'completed'`,
    [delivery],
  )
  return rows
}

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
export async function countStoredModelAnswers({ postgres }: Postgres): Promise<number> {
  const { rows } = await postgres.query<{ n: number }>(
    `select count(*)::int as n from idempotency
     where answer is not null and route not like '%/memory/%' and route not like '%/account/%'`,
  )
  return rows[0]!.n
}

/** Everything of jobs, open exchanges and staged lines whose content has a text, as JSON. */
export async function queuedRowsWith({ postgres }: Postgres, text: string): Promise<string[]> {
  const { rows } = await postgres.query<{ row: string }>(
    `select row_to_json(j)::text as row from pgboss.job j where data::text like $1
     union all select said::text from open_exchanges where said::text like $1
     union all select row_to_json(c)::text from bulk_chunks c where content::text like $1`,
    [`%${text}%`],
  )
  return rows.map(({ row }) => row)
}

/** The vault of an operation. */
export async function vaultOfOperation({ postgres }: Postgres, operation: string): Promise<string> {
  const { rows } = await postgres.query<{ vault: string }>(
    'select vault from operations where id = $1',
    [operation],
  )
  return rows[0]!.vault
}

/** How many steps a re-embedding has stored that is not finished. */
export async function countReembeddingSteps(
  { postgres }: Postgres,
  operation: string,
): Promise<number> {
  const { rows } = await postgres.query<{ n: number }>(
    'select count(*)::int as n from reembeddings where operation = $1',
    [operation],
  )
  return rows[0]!.n
}

/** How many staged files of a vault belong to an operation. */
export async function countAcceptedFiles({ postgres }: Postgres, vault: string): Promise<number> {
  const { rows } = await postgres.query<{ n: number }>(
    'select count(*)::int as n from bulk_files where vault = $1 and operation is not null',
    [vault],
  )
  return rows[0]!.n
}
