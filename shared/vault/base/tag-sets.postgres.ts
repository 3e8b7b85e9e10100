import type { VaultScope } from '#shared/domain/memory.ts'
import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'
import type { TagSet } from '#shared/domain/tags.ts'

/** Every tag set that memories of a vault have or had. */
export async function listTagSets(
  query: Query,
  { vault }: Pick<VaultScope, 'vault'>,
): Promise<TagSet[]> {
  const { rows } = await query<{ tag_set: string; memories: number }>(
    'select tag_set, memories from shared_tag_sets where vault = $1',
    [vault],
    'tag-sets.of',
  )
  return rows.map(({ tag_set, memories }) => ({
    tagSet: tag_set,
    tags: JSON.parse(tag_set) as string[],
    memories,
  }))
}

/** Changes the counts of a vault's tag sets. The caller holds the vault's lock (`lockVault`). */
export async function adjustTagSetCounts(
  { query }: Transaction,
  vault: string,
  changes: ReadonlyMap<string, number>,
): Promise<void> {
  await query(
    `insert into shared_tag_sets (vault, tag_set, memories)
     select $1, tag_set, memories from unnest($2::text[], $3::int[]) as item(tag_set, memories)
     on conflict (vault, tag_set)
       do update set memories = greatest(0, shared_tag_sets.memories + excluded.memories)`,
    [vault, [...changes.keys()], [...changes.values()]],
    'tag-sets.count',
  )
}
