import { createHash } from 'node:crypto'
import type { VaultScope } from '#shared/domain/memory.ts'
import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'
import type { TagSet } from '#shared/domain/tags.ts'

/** Every tag set that memories of a vault have or had. */
export async function listTagSets(
  query: Query,
  { vault }: Pick<VaultScope, 'vault'>,
): Promise<TagSet[]> {
  const { rows } = await query<{ tag_set: string; memories: number }>(
    `select coalesce(long_tag_set, tag_set) as tag_set, memories
     from shared_tag_sets where vault = $1`,
    [vault],
    'tag-sets.of',
  )
  return rows.map(({ tag_set, memories }) => ({
    tagSet: tag_set,
    tags: JSON.parse(tag_set) as string[],
    memories,
  }))
}

/** Bytes of a tag set that fit into the primary key: Postgres takes 2,704 with the vault and headers. */
const keyBytesMax = 2_600

/** The tag set itself; of a long one a digest, as a set with an empty tag, which no memory has. */
const toRowKey = (tagSet: string): string =>
  Buffer.byteLength(tagSet) <= keyBytesMax
    ? tagSet
    : JSON.stringify(['', createHash('sha256').update(tagSet).digest('hex')])

/** Changes the counts of a vault's tag sets. The caller holds the vault's lock (`lockVault`). */
export async function adjustTagSetCounts(
  { query }: Transaction,
  vault: string,
  changes: ReadonlyMap<string, number>,
): Promise<void> {
  const tagSets = [...changes.keys()]
  await query(
    `insert into shared_tag_sets (vault, tag_set, long_tag_set, memories)
     select $1, item.row_key, nullif(item.tag_set, item.row_key), item.memories
     from unnest($2::text[], $3::text[], $4::int[]) as item(tag_set, row_key, memories)
     on conflict (vault, tag_set)
       do update set memories = greatest(0, shared_tag_sets.memories + excluded.memories)`,
    [vault, tagSets, tagSets.map(toRowKey), [...changes.values()]],
    'tag-sets.count',
  )
}
