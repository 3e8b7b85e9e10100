import type { Query } from '#shared/storage/postgres/connect.ts'

/** The shared memories that one retrieval of a member returned, and those that it withheld. */
export type SharedRetrieval = {
  id: string
  org: string
  /** The `team_member_id`. */
  author: string
  /** Of the roles they had then. */
  allowedTags: readonly string[]
  wildcard: boolean
  /** Memories they may see, and memories they may not. */
  permitted: number
  dropped: number
  sample: readonly { id: string; tags: readonly string[] }[]
  /** Epoch milliseconds. */
  createdAt: number
}

export async function insertRetrievals(
  query: Query,
  retrievals: readonly SharedRetrieval[],
): Promise<void> {
  const items = retrievals.map(({ allowedTags, createdAt, ...retrieval }) => ({
    ...retrieval,
    allowed_tags: allowedTags,
    created_at: new Date(createdAt),
  }))
  await query(
    `insert into shared_retrievals
       (id, org, author, allowed_tags, wildcard, permitted, dropped, sample, created_at)
     select i.id, i.org, i.author, i.allowed_tags, i.wildcard, i.permitted, i.dropped, i.sample,
            i.created_at
     from jsonb_to_recordset($1::jsonb) as i(
       id uuid, org uuid, author text, allowed_tags text[], wildcard boolean, permitted int,
       dropped int, sample jsonb, created_at timestamptz)
     join orgs o on o.id = i.org`,
    [JSON.stringify(items)],
    'retrievals.insert',
  )
}

/** Rows kept of one organization. */
const retrievalsKeptMax = 500

/** Deletes all but the newest rows of an organization. */
export async function trimRetrievals(query: Query, org: string): Promise<void> {
  await query(
    `delete from shared_retrievals where org = $1 and created_at < (
       select created_at from shared_retrievals where org = $1
       order by created_at desc, id desc offset $2 limit 1)`,
    [org, retrievalsKeptMax - 1],
    'retrievals.trim',
  )
}

/** Deletes rows that are 30 days old. @returns how many. */
export async function dropOldRetrievals(query: Query): Promise<number> {
  const { rowCount } = await query(
    `delete from shared_retrievals where ctid = any(array(
       select ctid from shared_retrievals
       where created_at < now() - interval '30 days' limit 10000))`,
    [],
    'retrievals.forget',
  )
  return rowCount
}
