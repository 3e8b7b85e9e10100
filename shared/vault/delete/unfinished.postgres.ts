import { copyIdOf } from '#shared/core/ids.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'

/** Memories that work was to store in a vault. */
export type PromisedMemories = { vault: string; ids: readonly string[] }

/** Whether the vault that sent an operation has sent another file or copy after it, which was not cancelled. */
export async function hasSuccessor(query: Query, operation: string): Promise<boolean> {
  const { rowCount } = await query(
    `select from operations o join operations n on n.vault = o.vault and n.id > o.id
     where o.id = $1 and n.kind in ('upload', 'import', 'transfer', 'graft') and n.state <> 'cancelled'
     limit 1`,
    [operation],
  )
  return rowCount > 0
}

/** What chunks of a file may have stored without being settled, by chunk. */
export async function unsettledOfFile(
  query: Query,
  operation: string,
): Promise<PromisedMemories[]> {
  const { rows } = await query<{ vault: string; ids: string[] }>(
    `select f.vault, (select array_agg(planned->>'id') from json_array_elements(c.plan) as planned
                      where planned->>'as' = 'new') as ids
     from bulk_files f join bulk_chunks c on c.file = f.id
     where f.operation = $1 and not c.settled and c.plan is not null`,
    [operation],
  )
  return rows.map(({ vault, ids }) => ({ vault, ids: ids ?? [] }))
}

/** What chunks of a copy may have stored without being settled, by chunk. */
export async function unsettledOfCopy(
  query: Query,
  operation: string,
): Promise<PromisedMemories[]> {
  const { rows } = await query<{ vault: string; first: number; ids: string[] }>(
    `select c.destination as vault, k.first, k.ids
     from copies c join copy_chunks k on k.operation = c.operation
     where c.operation = $1 and not k.settled`,
    [operation],
  )
  return rows.map(({ vault, first, ids }) => ({
    vault,
    ids: ids.map((id, i) => copyIdOf(operation, first + i, id)),
  }))
}
