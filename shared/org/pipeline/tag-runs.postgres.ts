import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'
import { pgBossSchema } from '#shared/storage/queue/boss.ts'
import type { SharedPosition } from '#shared/org/memories/shared-lists.mongo.ts'

/** A tag that is asked of what is shared already. */
export type TagRun = {
  id: string
  org: string
  tag: string
  /** The admin's email. */
  createdBy: string
  memories: number
  examined: number
  tagged: number
  doubtful: number
  after: SharedPosition | null
  lastError: string | null
  createdAt: Date
  finishedAt: Date | null
}

const columns = `id, org, tag, created_by as "createdBy", memories, examined, tagged, doubtful,
  case when after_id is not null then json_build_array(after_at, after_id) end as after,
  last_error as "lastError", created_at as "createdAt", finished_at as "finishedAt"`

export async function findTagRun(query: Query, id: string): Promise<TagRun | undefined> {
  const { rows } = await query<TagRun>(
    `select ${columns} from org_tag_runs where id = $1`,
    [id],
    'tag-runs.find',
  )
  return rows[0]
}

/** The newest run of a tag. */
export async function findLatestTagRun(query: Query, tag: string): Promise<TagRun | undefined> {
  const { rows } = await query<TagRun>(
    `select ${columns} from org_tag_runs where tag = $1 order by created_at desc limit 1`,
    [tag],
    'tag-runs.latest',
  )
  return rows[0]
}

/** @throws a unique violation while another run of the tag is under way. */
export async function insertTagRun(
  { query }: Transaction,
  run: Pick<TagRun, 'id' | 'org' | 'tag' | 'createdBy' | 'memories'>,
): Promise<void> {
  await query(
    `insert into org_tag_runs (id, org, tag, created_by, memories) values ($1, $2, $3, $4, $5)`,
    [run.id, run.org, run.tag, run.createdBy, run.memories],
  )
}

/** Records a page whose memories have been asked about, once. */
export async function advanceTagRun(
  query: Query,
  { id, after }: Pick<TagRun, 'id' | 'after'>,
  page: { next: SharedPosition; examined: number; tagged: number; doubtful: number },
): Promise<void> {
  await query(
    `update org_tag_runs
     set examined = examined + $4, tagged = tagged + $5, doubtful = doubtful + $6,
         after_at = $2, after_id = $3, last_error = null
     where id = $1 and after_id is not distinct from $7::uuid`,
    [id, ...page.next, page.examined, page.tagged, page.doubtful, after?.[1] ?? null],
    'tag-runs.advance',
  )
}

/** Ends a run, or with an error notes why it waits. */
export async function settleTagRun(
  query: Query,
  id: string,
  lastError: string | null,
): Promise<void> {
  await query(
    `update org_tag_runs set last_error = $2,
            finished_at = case when $2::text is null then now() end
     where id = $1 and finished_at is null`,
    [id, lastError],
    'tag-runs.settle',
  )
}

/**
 * Ends runs whose job was given up or removed: nothing goes on with them, and the tag may be asked again.
 *
 * @returns how many
 */
export async function endOrphanedTagRuns(query: Query): Promise<number> {
  const { rowCount } = await query(
    `update org_tag_runs r set finished_at = now()
     where finished_at is null and created_at < now() - interval '5 minutes'
       -- A job that was put back has another id.
       and not exists (select from ${pgBossSchema}.job j where j.name = 'org-tag-run'
                       and j.state < 'completed' and j.data->>'run' = r.id::text)`,
    [],
    'tag-runs.end-orphaned',
  )
  return rowCount ?? 0
}
