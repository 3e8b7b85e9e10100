import type { Query } from '#shared/storage/postgres/connect.ts'
import type { MemoryPosition } from '#shared/vault/base/expiries.mongo.ts'

/** Memories of one part of a vault: a session vault, or with null the core vault and the reflections. */
export type PartitionIds = { session: string | null; ids: string[] }

/** The work of a step. */
export type ReembeddingStep = {
  /** Whether the memories lose their other vectors; otherwise they get one in the new space. */
  dropping: boolean
  places: PartitionIds[]
  after: MemoryPosition | null
}

export type Reembedding = ReembeddingStep & {
  operation: string
  account: string
  /** The key that asked, truncated. */
  key: string
  vault: string
  epoch: number
  /** The vault's epoch now. */
  currentEpoch: number
  /** The vault moved to another model since, and a later re-embedding of it was accepted. */
  isSuperseded: boolean
  model: string
  dropPrevious: boolean
  step: number
  embedded: number
  dropped: number
}

/** Inserts the work of an operation, in the transaction that accepts it. */
export async function insertReembedding(
  query: Query,
  {
    operation,
    vault,
    epoch,
    model,
    dropPrevious,
  }: Pick<Reembedding, 'operation' | 'vault' | 'epoch' | 'model' | 'dropPrevious'>,
): Promise<void> {
  await query(
    `insert into reembeddings (operation, vault, epoch, model, drop_previous)
     values ($1, $2, $3, $4, $5)`,
    [operation, vault, epoch, model, dropPrevious],
    'reembeddings.insert',
  )
}

/** An operation that is at this step; undefined when it is further on or has ended. */
export async function findReembedding(
  query: Query,
  operation: string,
  step: number,
): Promise<Reembedding | undefined> {
  const { rows } = await query<Reembedding>(
    `select r.operation, o.account, coalesce(k.masked, '') as key, r.vault, r.epoch,
            v.epoch as "currentEpoch", r.model, r.drop_previous as "dropPrevious", r.step, r.dropping,
            r.places, r.after, r.embedded, r.dropped,
            v.embeddings <> r.model and coalesce(v.moved_at > o.created_at, false) and exists (
              select from operations n
              where n.vault = r.vault and n.id > r.operation and n.kind = 'reembed'
            ) as "isSuperseded"
     from reembeddings r
     join operations o on o.id = r.operation and o.state in ('accepted', 'running', 'failed')
     join vaults v on v.id = r.vault
     left join memory_keys k on k.hash = o.key_hash
     where r.operation = $1 and r.step = $2`,
    [operation, step],
    'reembeddings.find',
  )
  return rows[0]
}

/**
 * Marks a step as done and stores the next one.
 *
 * @returns false when it was done before: its effects must not count twice.
 */
export async function advanceReembedding(
  query: Query,
  { operation, step }: Pick<Reembedding, 'operation' | 'step'>,
  { embedded, dropped }: { embedded: number; dropped: number },
  next: ReembeddingStep,
): Promise<boolean> {
  const { rowCount } = await query(
    `update reembeddings set step = step + 1, embedded = embedded + $3, dropped = dropped + $4,
            dropping = $5, places = $6, after = $7
     where operation = $1 and step = $2`,
    [
      operation,
      step,
      embedded,
      dropped,
      next.dropping,
      JSON.stringify(next.places),
      next.after === null ? null : JSON.stringify(next.after),
    ],
    'reembeddings.advance',
  )
  return rowCount === 1
}

/** Deletes a re-embedding whose operation has ended. */
export async function dropReembedding(query: Query, operation: string): Promise<void> {
  await query('delete from reembeddings where operation = $1', [operation], 'reembeddings.drop')
}

/** The epochs of sessions of a vault that were ever cleared; all others have epoch 0. */
export async function clearedSessionEpochs(
  query: Query,
  vault: string,
): Promise<Map<string, number>> {
  const { rows } = await query<{ session: string; epoch: number }>(
    'select session, epoch from sessions where vault = $1 and epoch > 0',
    [vault],
    'sessions.cleared',
  )
  return new Map(rows.map(({ session, epoch }) => [session, epoch]))
}
