import { deadLetterQueueOf, type JobName } from '#shared/domain/jobs.ts'
import type { RelabelJob } from '#shared/domain/job-payloads.ts'
import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'
import { pgBossSchema } from '#shared/storage/queue/boss.ts'

const queue: JobName = 'org-relabel'

/**
 * The jobs `j` of a tag `t` and a former label of it that wait, run or are dead letters: part of a statement.
 *
 * @param label an expression
 */
const jobsOfLabel = (label: string): string =>
  `select from ${pgBossSchema}.job j
   where j.name in ('${queue}', '${deadLetterQueueOf(queue)}') and j.state < 'completed'
     and j.data->>'tag' = t.id::text and j.data->>'from' = ${label}`

/** A part of a statement: the time of an operation, its first 48 bits. */
const timeOf = (operation: string): string => `left(${operation}, 13)`

/**
 * Takes a former label from its tag, unless the tag has got it by a later renaming whose jobs are not done:
 * its hour is not over.
 *
 * @returns the label of the tag; undefined when the former label stays, or is gone.
 */
export async function endFormerLabel(
  tx: Transaction,
  { org, tag, from, operation }: Pick<RelabelJob, 'org' | 'tag' | 'from' | 'operation'>,
): Promise<string | undefined> {
  const { rows } = await tx.query<{ label: string }>(
    `update org_tags t set former = array_remove(former, $3)
     where org = $1 and id = $2 and label <> $3 and $3 = any(former)
       and not exists (${jobsOfLabel('$3')}
                       and ${timeOf(`j.data->>'operation'`)} > ${timeOf('$4')})
     returning label`,
    [org, tag, from, operation],
  )
  return rows[0]?.label
}

/** Former labels that no job will end, of tags in any organization; the actor is the owner. */
export async function formerLabelsWithoutJob(
  query: Query,
  max: number,
): Promise<Omit<RelabelJob, 'operation' | 'last'>[]> {
  const { rows } = await query<Omit<RelabelJob, 'operation' | 'last'>>(
    `select t.org, o.vault, v.epoch, a.email as actor, t.id as tag, f.label as "from"
     from org_tags t cross join unnest(t.former) f(label)
     join orgs o on o.id = t.org join vaults v on v.id = o.vault join accounts a on a.id = o.account
     where f.label <> t.label and not exists (${jobsOfLabel('f.label')})
     limit $1`,
    [max],
    'former-labels.without-job',
  )
  return rows
}
