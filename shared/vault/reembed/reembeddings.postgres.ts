import type { OperationStep } from '#shared/operations/operation-steps.postgres.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'
import type { MemoryPosition } from '#shared/vault/base/expiries.mongo.ts'

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

/**
 * Whether the vault was cleared since a re-embedding was accepted, or moved to another model by a later one.
 */
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
