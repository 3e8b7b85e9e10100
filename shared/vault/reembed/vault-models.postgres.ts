import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'

const settingName = 'embeddings'

/** So long after a vault has moved somebody looks for what came late; then ever more rarely, for a day. */
const firstCheckDelay = '1 minute'

/** The default embedding model kept in this database, held until the transaction ends. */
export async function lockDefaultModel({ query }: Transaction): Promise<string | undefined> {
  await query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [`setting:${settingName}`])
  const { rows } = await query<{ value: string }>('select value from settings where name = $1', [
    settingName,
  ])
  return rows[0]?.value
}

/** Keeps the first default model; vaults that were made before stand in its space. */
export async function insertDefaultModel({ query }: Transaction, model: string): Promise<void> {
  await query('insert into settings (name, value) values ($1, $2)', [settingName, model])
  await query('update vaults set embeddings = $1 where embeddings is null', [model])
}

/** Keeps another default model. Vaults that nothing was ever stored in go along, all others stay. */
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

/** How many vaults that something was stored in stand in the space of each model, most first. */
export async function countVaultsByModel(
  query: Query,
): Promise<{ model: string; vaults: number }[]> {
  const { rows } = await query<{ model: string; vaults: number }>(
    `select embeddings as model, count(*)::int as vaults from vaults
     where embeddings is not null and revision > 0 group by 1 order by 2 desc, 1`,
  )
  return rows
}

/** From here on what names no model goes by this one; null: by the default of the database. */
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

/** A vault that has moved, and who speaks for it. */
export type DueModelCheck = {
  vault: string
  epoch: number
  model: string
  account: string
  keyHash: Buffer
}

/** Vaults that have moved and are to be looked at by now, none that is still being re-embedded. */
export async function dueModelChecks(query: Query, max: number): Promise<DueModelCheck[]> {
  const { rows } = await query<DueModelCheck>(
    `select v.id as vault, v.epoch, v.embeddings as model, v.account,
            coalesce((select hash from memory_keys k where k.vault = v.id
                      order by k.created_at desc limit 1), ''::bytea) as "keyHash"
     from vaults v
     where v.look_at <= now() and v.embeddings is not null and v.revision > 0
       and not exists (select from reembeddings r join operations o on o.id = r.operation
                       where r.vault = v.id and o.state in ('accepted', 'running'))
     order by v.look_at, v.id limit $1`,
    [max],
    'vaults.due-moves',
  )
  return rows
}

/** The next look is ten times as long after the move as this one; after a day there is none. */
export async function postponeModelCheck(query: Query, vault: string): Promise<void> {
  await query(
    `update vaults set look_at = case when now() - moved_at < interval '1 day'
                                      then moved_at + 10 * (now() - moved_at) end
     where id = $1 and look_at <= now()`,
    [vault],
    'vaults.postpone-look',
  )
}
