import { deadLetterQueueOf } from '#shared/domain/jobs.ts'
import type { RelabelJob } from '#shared/domain/job-payloads.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'
import { pgBossSchema } from '#shared/storage/queue/boss.ts'

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
       and not exists (select from ${pgBossSchema}.job j
                       where j.name = any($5) and j.state < 'completed'
                         and j.data->>'tag' = t.id::text and j.data->>'from' = $3
                         and ${timeOf(`j.data->>'operation'`)} > ${timeOf('$4')})
     returning label`,
    [org, tag, from, operation, ['org-relabel', deadLetterQueueOf('org-relabel')]],
  )
  return rows[0]?.label
}
