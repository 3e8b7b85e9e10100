import { policyRows } from '#shared/org/base/policy-rows.postgres.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'
import { deadLetterQueueOf } from '#shared/domain/jobs.ts'
import type { RelabelJob } from '#shared/domain/job-payloads.ts'
import { pgBossSchema } from '#shared/storage/queue/boss.ts'

export type TagRow = {
  id: string
  org: string
  label: string
  /** The question to the classifier about a memory. */
  question: string
  /** Memories it fits. */
  examples: string[]
  /** Memories that it does not fit, although they seem to. */
  negatives: string[]
  /** Earlier labels, which memories may still have. */
  former: string[]
  createdAt: Date
}

export const tagRows = policyRows<TagRow>(
  'org_tags',
  'id, org, label, question, examples, negatives, former, created_at as "createdAt"',
)

export const { list: listTags, find: findTag } = tagRows

/** @throws a unique violation when another tag has that label. */
export async function insertTag(
  tx: Transaction,
  { id, org, label, question, examples, negatives }: Omit<TagRow, 'createdAt' | 'former'>,
): Promise<void> {
  await tx.query(
    `insert into org_tags (id, org, label, question, examples, negatives)
     values ($1, $2, $3, $4, $5, $6)`,
    [id, org, label, question, examples, negatives],
  )
}

export type TagChange = {
  label?: string | undefined
  question?: string | undefined
  examples?: string[] | undefined
  negatives?: string[] | undefined
}

/**
 * Changes the given fields; a replaced label becomes a former label.
 *
 * @throws a unique violation when another tag has that label.
 */
export async function updateTag(
  tx: Transaction,
  id: string,
  { label, question, examples, negatives }: TagChange,
): Promise<void> {
  await tx.query(
    `update org_tags set
       former = case when $2 = label then former
                     when $2 is null then former
                     else array_append(array_remove(array_remove(former, $2), label), label) end,
       label = coalesce($2, label), question = coalesce($3, question),
       examples = coalesce($4, examples), negatives = coalesce($5, negatives)
     where id = $1`,
    [id, label ?? null, question ?? null, examples ?? null, negatives ?? null],
  )
}

/** Takes a former label from another tag. @returns the present label of that tag. */
export async function removeFormerLabel(
  tx: Transaction,
  org: string,
  label: string,
  tag: string,
): Promise<string | undefined> {
  const { rows } = await tx.query<{ label: string }>(
    `update org_tags set former = array_remove(former, $2)
     where org = $1 and id <> $3 and $2 = any(former) returning label`,
    [org, label, tag],
  )
  return rows[0]?.label
}

/** SQL: the time of an operation, its first 48 bits. */
const timeOf = (operation: string): string => `left(${operation}, 13)`

/**
 * Takes a former label from its tag, unless a later renaming whose jobs are not done has made it one again.
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
