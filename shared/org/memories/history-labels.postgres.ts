import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'
import { historyDays } from '#shared/org/memories/shared-writes.postgres.ts'

/** The changes of an organization's memories that can still be undone, $1: the organization. */
const restorable = `w.org = $1 and w.state = 'done' and w.id in (
  select write from audit_events
  where org = $1 and created_at > now() - make_interval(days => ${historyDays}))`

/** Whether a memory, removed or changed, can be restored to a state with one of these labels. */
export async function isLabelRestorable(
  query: Query,
  org: string,
  labels: readonly string[],
): Promise<boolean> {
  const { rows } = await query<{ found: boolean }>(
    `select exists (
       select from shared_writes w where ${restorable} and w.before->'tags' ?| $2::text[]
     ) as found`,
    [org, labels],
    'history.labels',
  )
  return rows[0]!.found
}

/** A part of a statement: a snapshot with another label in the place of one. */
const relabelled = (snapshot: string): string =>
  `case when ${snapshot}->'tags' ? $2 then jsonb_set(${snapshot}, '{tags}', (
     select jsonb_agg(distinct case label when $2 then $3 else label end)
     from jsonb_array_elements_text(${snapshot}->'tags') label))
   else ${snapshot} end`

/** Replaces a label in everything that memories of an organization can be restored to. */
export async function relabelHistory(
  { query }: Transaction,
  org: string,
  { from, to }: { from: string; to: string },
): Promise<void> {
  await query(
    `update shared_writes w set before = ${relabelled('w.before')}, after = ${relabelled('w.after')}
     where ${restorable} and (w.before->'tags' ? $2 or w.after->'tags' ? $2)`,
    [org, from, to],
    'history.relabel',
  )
}
