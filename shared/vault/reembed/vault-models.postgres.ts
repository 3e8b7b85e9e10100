import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'
import type { OperationStep } from '#shared/operations/operation-steps.postgres.ts'
import type { MemoryPosition } from '#shared/vault/base/expiries.mongo.ts'

const settingName = 'embeddings'

/** When a vault that has moved is first checked for late arrivals; later checks are rarer, for a day. */
const firstCheckDelay = '1 minute'

/** The default embedding model stored in this database, locked until the transaction ends. */
export async function lockDefaultModel({ query }: Transaction): Promise<string | undefined> {
  await query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [`setting:${settingName}`])
  const { rows } = await query<{ value: string }>('select value from settings where name = $1', [
    settingName,
  ])
  return rows[0]?.value
}

/** Stores the first default model, also for vaults that were created before. */
export async function insertDefaultModel({ query }: Transaction, model: string): Promise<void> {
  await query('insert into settings (name, value) values ($1, $2)', [settingName, model])
  await query('update vaults set embeddings = $1 where embeddings is null', [model])
}

/** Changes the default model, also of vaults that were never written to; all others keep theirs. */
export async function changeDefaultModel({ query }: Transaction, model: string): Promise<void> {
  await query('update settings set value = $2, set_at = now() where name = $1', [
    settingName,
    model,
  ])
  await query(
    `update vaults set embeddings = $1, moved_at = now(), look_at = now() + $2::interval
     where embeddings <> $1 and revision = 0 and pending = 0`,
    [model, firstCheckDelay],
  )
}

/** The number of vaults with memories per model, largest first. */
export async function countVaultsByModel(
  query: Query,
): Promise<{ model: string; vaults: number }[]> {
  const { rows } = await query<{ model: string; vaults: number }>(
    `select embeddings as model, count(*)::int as vaults from vaults
     where embeddings is not null and revision > 0 group by 1 order by 2 desc, 1`,
  )
  return rows
}

/** Sets the model of a vault, used by requests that name none; null: the default model. */
export async function setVaultModel(
  query: Query,
  vault: string,
  model: string | null,
): Promise<void> {
  await query(
    `with wanted as (
       select coalesce($2, (select value from settings where name = $3)) as model
     )
     update vaults v set embeddings = w.model, moved_at = now(), look_at = now() + $4::interval
     from wanted w where v.id = $1 and v.embeddings is distinct from w.model`,
    [vault, model, settingName, firstCheckDelay],
    'vaults.move',
  )
}

/** A vault that has moved, with its owner's account and newest key. */
export type DueModelCheck = {
  vault: string
  epoch: number
  model: string
  account: string
  keyHash: Buffer
}

/** Vaults that have moved and are due for a check, without those that are being re-embedded. */
export async function dueModelChecks(query: Query, max: number): Promise<DueModelCheck[]> {
  const { rows } = await query<DueModelCheck>(
    `select v.id as vault, v.epoch, v.embeddings as model, v.account,
            coalesce((select hash from memory_keys k where k.vault = v.id
                      order by k.created_at desc limit 1), ''::bytea) as "keyHash"
     from vaults v
     where v.look_at <= now() and v.embeddings is not null and v.revision > 0
       and not exists (select from operations o where o.vault = v.id and o.kind = 'reembed'
                         and o.state in ('accepted', 'running'))
     order by v.look_at, v.id limit $1`,
    [max],
    'vaults.due-moves',
  )
  return rows
}

/** Schedules the next check ten times as long after the move as this one; none after a day. */
export async function postponeModelCheck(query: Query, vault: string): Promise<void> {
  await query(
    `update vaults set look_at = case when now() - moved_at < interval '1 day'
                                      then moved_at + 10 * (now() - moved_at) end
     where id = $1 and look_at <= now()`,
    [vault],
    'vaults.postpone-look',
  )
}

export type ReembeddingRequest = {
  /** The embedding model of the new space. */
  model: string
  dropPrevious: boolean
}

/** Memories of one part of a vault: a session vault, or with null the core vault and the reflections. */
export type PartitionIds = { session: string | null; ids: string[] }

/** The work of a step, fixed before it begins, so that a second run announces the same memories. */
export type ReembeddingInput = {
  /** Whether the memories lose their other vectors; otherwise they get one in the new space. */
  dropping: boolean
  places: PartitionIds[]
  /** The last memory of `places`: where the next page begins. */
  after: MemoryPosition | null
}

export type ReembeddingStep = OperationStep<ReembeddingRequest, ReembeddingInput, null>

/** Whether the vault was cleared since a re-embedding was accepted, or moved by a later one. */
export async function readObstacle(
  query: Query,
  { operation, vault, epoch, model }: Omit<ReembeddingStep, keyof ReembeddingInput>,
): Promise<'cleared' | 'superseded' | null> {
  const { rows } = await query<{ isCleared: boolean; isSuperseded: boolean }>(
    `select v.epoch <> $3 as "isCleared",
            v.embeddings <> $4 and coalesce(v.moved_at > o.created_at, false) and exists (
              select from operations n where n.vault = v.id and n.id > o.id and n.kind = 'reembed'
            ) as "isSuperseded"
     from vaults v join operations o on o.id = $1 where v.id = $2`,
    [operation, vault, epoch, model],
    'reembeddings.obstacle',
  )
  if (rows[0]!.isCleared) return 'cleared'
  return rows[0]!.isSuperseded ? 'superseded' : null
}
