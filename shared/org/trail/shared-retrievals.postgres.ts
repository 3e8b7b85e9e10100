import type { Query } from '#shared/storage/postgres/connect.ts'
import type { RetrievalTrailEntry } from '#shared/org/base/org-trail.postgres.ts'

/** A retrieval as it is stored; `author` is the `team_member_id`. */
export type SharedRetrieval = Omit<RetrievalTrailEntry, 'kind' | 'createdAt'> & {
  org: string
  /** Sealed, until the lookup of what was denied. */
  question: string | null
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
       (id, org, author, allowed_tags, wildcard, permitted, dropped, sample, request, returned,
        question, denied, created_at)
     select i.id, i.org, i.author, i.allowed_tags, i.wildcard, i.permitted, i.dropped, i.sample,
            i.request, i.returned, i.question, nullif(i.denied, 'null'),
            i.created_at
     from jsonb_to_recordset($1::jsonb) as i(
       id uuid, org uuid, author text, allowed_tags text[], wildcard boolean, permitted int,
       dropped int, sample jsonb, request text, returned jsonb, question text, denied jsonb,
       created_at timestamptz)
     join orgs o on o.id = i.org`,
    [JSON.stringify(items)],
    'retrievals.insert',
  )
}

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

/** A question to ask again without the wall, with the present shared vault. */
export type OpenQuestion = Pick<SharedRetrieval, 'id' | 'org' | 'allowedTags' | 'wildcard'> & {
  question: string
  vault: string
  epoch: number
  revision: number
  space: string | null
}

/** Lists the open questions of members, newest first; drops those older than ten minutes. */
export async function listOpenQuestions(query: Query, max: number): Promise<OpenQuestion[]> {
  await query(
    `update shared_retrievals set question = null
     where question is not null and created_at < now() - interval '10 minutes'`,
    [],
    'retrievals.drop-questions',
  )
  const { rows } = await query<OpenQuestion>(
    `select r.id, r.org, r.allowed_tags as "allowedTags", r.wildcard, r.question,
            o.vault, o.space, v.epoch, v.revision
     from shared_retrievals r join orgs o on o.id = r.org join vaults v on v.id = o.vault
     where r.question is not null order by r.created_at desc limit $1`,
    [max],
    'retrievals.open',
  )
  return rows
}

/** Stores what was denied, and deletes the question. */
export async function saveDenied(
  query: Query,
  id: string,
  denied: SharedRetrieval['denied'],
): Promise<void> {
  await query(
    'update shared_retrievals set denied = $2::jsonb, question = null where id = $1',
    [id, JSON.stringify(denied)],
    'retrievals.denied',
  )
}

/**
 * Lists the memories that members were given in the seconds before they stored these exchanges themselves. Memories
 * in a proxied prompt are known by their turn.
 */
export async function findReturnedBefore(
  query: Query,
  turns: readonly string[],
  seconds: number,
): Promise<string[]> {
  const { rows } = await query<{ id: string }>(
    `select distinct given.id
     from org_turns t join operations o on o.id = t.id and o.kind = 'ingest'
     join shared_retrievals r on r.org = t.org and r.author = t.author
       and r.created_at <= t.created_at
       and r.created_at > t.created_at - make_interval(secs => $2)
     cross join lateral jsonb_array_elements_text(r.returned) as given(id)
     where t.id = any($1::uuid[])`,
    [turns, seconds],
    'retrievals.returned-before',
  )
  return rows.map(({ id }) => id)
}
