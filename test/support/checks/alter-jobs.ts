import { rollUpDaySql } from '#shared/billing/usage-sums.postgres.ts'
import type { Caller } from '#shared/access/caller.ts'
import type { Backend } from '#shared/backend.ts'
import type { JobName } from '#shared/domain/jobs.ts'

/** What tests change of operations, jobs, deliveries and usage; see `alter.ts`. */

type Postgres = Pick<Backend, 'postgres'>

/** Makes the waiting jobs of a queue due, or those with these ids. */
export const makeJobsDue = ({ postgres }: Postgres, queue: JobName, ids?: readonly string[]) =>
  postgres.query(
    `update pgboss.job set start_after = now()
     where name = $1 and state < 'active' and ($2::uuid[] is null or id = any($2))`,
    [queue, ids],
  )

/**
 * Loses the stored answers of requests with an Idempotency-Key, as a killed process does.
 *
 * @param heldSeconds for which another process still holds the key.
 */
export const loseAnswers = ({ postgres }: Postgres, idempotencyKey?: string, heldSeconds = -1) =>
  postgres.query(
    `update idempotency set answer = null, locked_until = now() + make_interval(secs => $2)
     where idempotency = coalesce($1, idempotency)`,
    [idempotencyKey ?? null, heldSeconds],
  )

/** Ends the time for which processes hold Idempotency-Keys. */
export const releaseIdempotencyKeys = ({ postgres }: Postgres) =>
  postgres.query(`update idempotency set locked_until = now() - interval '1 second'`)

/** Sets how many operations of the vault of an operation are waiting. */
export const setPending = ({ postgres }: Postgres, operation: string, count: number) =>
  postgres.query(
    `update vaults set pending = $2 where id = (select vault from operations where id = $1)`,
    [operation, count],
  )

/** Lets a worker have a job. */
export const startJob = ({ postgres }: Postgres, id: string) =>
  postgres.query(`update pgboss.job set state = 'active', started_on = now() where id = $1`, [id])

/** Ends a job after its last try, which can be taken up again. */
export const failJob = ({ postgres }: Postgres, id: string) =>
  postgres.query(`update pgboss.job set state = 'failed', completed_on = now() where id = $1`, [id])

/** Gives a job up after ten tries, as the queue does. @returns the id of its dead letter */
export async function giveUpJob(
  { postgres }: Postgres,
  id: string,
  queue: JobName = 'ingest',
): Promise<string> {
  const { rows } = await postgres.query<{ id: string }>(
    `with dying as (delete from pgboss.job where id = $1 and name = $2 returning *)
     insert into pgboss.job (id, name, data, state, keep_until, retry_limit,
                             source_name, source_id, source_retry_count, source_output)
     select gen_random_uuid(), name || '.dead', data, 'created', now() + interval '1 year', 10,
            name, id, 10, '{"message": "the model was away"}'
     from dying returning id`,
    [id, queue],
  )
  return rows[0]!.id
}

/** Makes a waiting job older. */
export const ageJob = ({ postgres }: Postgres, id: string, age: string) =>
  postgres.query(
    `update pgboss.job set created_on = now() - $2::interval, start_after = now() - $2::interval
     where id = $1`,
    [id, age],
  )

/** Removes completed jobs, as the queue does after a while. */
export const removeCompletedJobs = ({ postgres }: Postgres) =>
  postgres.query(`delete from pgboss.job where state = 'completed'`)

/** Bills an operation so much earlier. */
export const ageBill = ({ postgres }: Postgres, operation: string, age: string) =>
  postgres.query('update usage_events set at = at - $2::interval where id = $1', [operation, age])

/** Sets that so many days are still to be rolled up. */
export const rewindUsageRollUp = (
  { postgres }: Postgres,
  table: 'usage_rolled' | 'usage_accounts_rolled',
  days: number,
) => postgres.query(`update ${table} set before = ${rollUpDaySql} - $1::int`, [days])

/**
 * Stores searches of the past in the vaults of an account that have a key.
 *
 * @param days how many days ago; one event for each.
 */
export const insertPastUsage = (
  { postgres }: Postgres,
  account: string,
  days: readonly number[],
  { model = null, memoryTokens = 3 }: { model?: string | null; memoryTokens?: number } = {},
) =>
  postgres.query(
    `insert into usage_events (id, account, vault, key_hash, kind, model, input_tokens,
                               output_tokens, memory_tokens, at)
     select gen_random_uuid(), v.account, v.id, k.hash, 'search', $3, 1, 2, $4,
            (now() at time zone 'utc')::date::timestamp at time zone 'utc' - interval '1 day' * day
     from vaults v join memory_keys k on k.vault = v.id, unnest($2::int[]) day
     where v.account = $1`,
    [account, days, model, memoryTokens],
  )

type PastCall = {
  model?: string
  session?: string
  input?: number
  cached?: number
  output?: number
  memory?: number
}

/** Stores a model call with a key, of so many days ago. */
export const insertPastCall = (
  { postgres }: Postgres,
  { account, keyHash, scope }: Pick<Caller, 'account' | 'keyHash'> & { scope: { vault: string } },
  daysAgo: number,
  { model, session, input = 0, cached = 0, output = 0, memory = 0 }: PastCall,
) =>
  postgres.query(
    `insert into usage_events (id, account, vault, key_hash, kind, model, session, input_tokens,
                               cached_tokens, output_tokens, memory_tokens, at)
     values (gen_random_uuid(), $1, $2, $3, 'proxy', $4, $5, $6, $7, $8, $9,
             date_trunc('day', now(), 'utc') - make_interval(days => $10))`,
    [account, scope.vault, keyHash, model, session, input, cached, output, memory, daysAgo],
  )

/** Removes the rolled-up usage of all accounts. */
export const removeAccountSums = ({ postgres }: Postgres) =>
  postgres.query('delete from usage_accounts')

/** Stores an accepted operation without a job. */
export async function insertOperation(
  { postgres }: Postgres,
  operation: { id: string; account: string; vault: string; keyHash: Buffer; kind: string },
): Promise<void> {
  const { id, account, vault, keyHash, kind } = operation
  await postgres.query(
    `insert into operations (id, account, vault, key_hash, kind, epoch, awaited)
     values ($1, $2, $3, $4, $5, 1, false)`,
    [id, account, vault, keyHash, kind],
  )
}

/** Stores finished operations that are younger, by their ids, than one that they are copied from. */
export const insertLaterOperations = (
  { postgres }: Postgres,
  from: string,
  { kind, count }: { kind: string; count: number },
) =>
  postgres.query(
    `insert into operations (id, account, vault, key_hash, kind, epoch, state, finished_at)
     select ('ffffffff-ffff-7fff-8fff-' || lpad(to_hex(n), 12, '0'))::uuid, o.account, o.vault,
            o.key_hash, $2, 1, 'done', now()
     from operations o, generate_series(1, $3::int) n where o.id = $1`,
    [from, kind, count],
  )

/** Sets what is stored of an operation; a state ends it now. */
export const setOperation = (
  { postgres }: Postgres,
  operation: string,
  set: { kind?: string; state?: 'done' | 'failed' | 'cancelled'; outcome?: object },
) =>
  postgres.query(
    `update operations
     set kind = coalesce($2, kind), state = coalesce($3, state), outcome = coalesce($4, outcome),
         finished_at = case when $3::text is null then finished_at else now() end
     where id = $1`,
    [operation, set.kind, set.state, set.outcome && JSON.stringify(set.outcome)],
  )

/** Stores a file whose lines have not all arrived, of an age such as `1 minute`. */
export const insertStagedFile = ({ postgres }: Postgres, vault: string, age: string) =>
  postgres.query(
    `insert into long_operations (id, vault, kind, request, created_at)
     values (gen_random_uuid(), $1, 'upload', '{}', now() - $2::interval)`,
    [vault, age],
  )

/** Stores a delivery of a webhook without a job. @returns its id. */
export async function insertDelivery(
  { postgres }: Postgres,
  webhook: string,
  dueInMinutes: number,
): Promise<string> {
  const { rows } = await postgres.query<{ id: string }>(
    `insert into webhook_deliveries (webhook, event, data, due_at)
     values ($1, 'webhook.test', '{}', now() + make_interval(mins => $2)) returning id`,
    [webhook, dueInMinutes],
  )
  return rows[0]!.id
}

/** Puts the next try of a delivery off. */
export const setDeliveryDue = ({ postgres }: Postgres, delivery: string, inMinutes: number) =>
  postgres.query(
    'update webhook_deliveries set due_at = now() + make_interval(mins => $2) where id = $1',
    [delivery, inMinutes],
  )

/** Puts the waiting jobs of a queue off by a day. */
export const postponeJobs = ({ postgres }: Postgres, queue: JobName) =>
  postgres.query(
    `update pgboss.job set start_after = now() + interval '1 day' where name = $1 and state < 'active'`,
    [queue],
  )

/** Puts the job of a delivery off by a day. */
export const postponeDelivery = ({ postgres }: Postgres, delivery: string) =>
  postgres.query(
    `update pgboss.job set start_after = now() + interval '1 day' where singleton_key = $1`,
    [delivery],
  )

/** Completes the job of a delivery. */
export const completeDeliveryJob = ({ postgres }: Postgres, delivery: string) =>
  postgres.query(`update pgboss.job set state = 'completed' where singleton_key = $1`, [delivery])

/** Sets for how many days a webhook has been failing. */
export const setFailingDays = ({ postgres }: Postgres, webhook: string, days: number) =>
  postgres.query(
    'update webhooks set failing_since = now() - make_interval(days => $2) where id = $1',
    [webhook, days],
  )

/** Ends the time for which the former secret of a webhook signs as well. */
export const endFormerSecret = ({ postgres }: Postgres, webhook: string) =>
  postgres.query('update webhooks set former_until = now() where id = $1', [webhook])

/** Lets the time pass after which the jobs under way are taken for those of a dead worker. */
export const missHeartbeats = ({ postgres }: Postgres) =>
  postgres.query(
    `update pgboss.job set heartbeat_on = heartbeat_on - interval '1 minute' where state = 'active'`,
  )

/** Adds so many copies of the jobs of a queue: what their work has written is found by each. */
export const multiplyJobs = ({ postgres }: Postgres, queue: JobName, copies: number) =>
  postgres.query(
    `insert into pgboss.job (id, name, data, retry_limit)
     select gen_random_uuid(), name, data, retry_limit
     from pgboss.job, generate_series(1, $2::int) where name = $1`,
    [queue, copies],
  )
