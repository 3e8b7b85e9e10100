import { Refusal } from '#shared/core/errors.ts'
import type { Admin } from '#shared/access/admin.ts'
import { nameAsked } from '#shared/org/normalize.ts'
import { changePolicy, organizationOf, removeOnce } from '#shared/org/policy.ts'
import type { Query, Transaction, Postgres } from '#shared/storage/postgres/connect.ts'
import { listRoles, relabelRoles } from '#shared/org/roles.postgres.ts'
import { tagSetsOf } from '#shared/vault/base/tag-sets.postgres.ts'
import {
  deleteTag,
  findTag,
  insertTag,
  listTags,
  takeFormerLabel,
  updateTag,
  type TagChange,
  type TagRow,
} from '#shared/org/tags.postgres.ts'
import type { RelabelJob } from '#shared/domain/job-payloads.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'

type Acting = { admin: Admin; org: string }

const taken = 'The organization has a tag of this label already'

/**
 * Tags of an organization, oldest first.
 *
 * @throws Refusal `missing`.
 */
export async function tagsOfOrg(
  { postgres }: { postgres: Postgres },
  { admin, org }: Acting,
): Promise<TagRow[]> {
  await organizationOf(postgres.query, admin, org)
  return listTags(postgres.query, org)
}

/**
 * Creates a tag. The same operation again answers with the tag it made.
 *
 * @param operation becomes the tag's id
 * @throws Refusal `missing`; `invalid` for a blank label and for `*`; `conflict` when there is one of
 *   that label.
 */
export const createTag = (
  backend: { postgres: Postgres },
  { admin, org }: Acting,
  operation: string,
  { label: named, question, examples, negatives }: TagChange & { label: string },
): Promise<TagRow> =>
  changePolicy(backend, { admin, org, taken }, async tx => {
    const label = nameAsked(named, 'label')
    const made = await findTag(tx.query, org, operation)
    if (made) return made
    requireOneTag(label)
    // Memories may bear it already: nobody sees more of them until a role allows it.
    if (await takeFormerLabel(tx, org, label, operation)) {
      await requireUnborne(tx, await organizationOf(tx.query, admin, org), label)
    }
    await insertTag(tx, {
      id: operation,
      org,
      label,
      question: question ?? `Is this about ${label}?`,
      examples: examples ?? [],
      negatives: negatives ?? [],
    })
    return tagOf(tx.query, org, operation)
  })

/**
 * Writes what is given. Roles that allow the tag allow it under a new label from the next request on;
 * memories get the new label by a job, and whoever may see the one may see the other meanwhile. A new
 * label never shows anybody more than they saw before.
 *
 * @param operation the id of the request
 * @throws Refusal `missing`; `invalid` for a blank label and for `*`; `conflict` when another tag has
 *   that label, memories bear it that are not this tag's, or a role allows it that does not allow the tag.
 */
export const changeTag = (
  backend: { postgres: Postgres; queue: Queue },
  { admin, org }: Acting,
  id: string,
  { operation, label, ...others }: TagChange & { operation: string },
): Promise<TagRow> =>
  changePolicy(backend, { admin, org, taken }, async tx => {
    const before = await tagOf(tx.query, org, id)
    const { label: from } = before
    const change = { ...others, label: label && nameAsked(label, 'label') }
    const { vault, epoch } = await organizationOf(tx.query, admin, org)
    if (change.label !== undefined && change.label !== from) {
      await claimLabel(tx, { org, vault }, before, change.label)
    }
    await updateTag(tx, id, change)
    const tag = await tagOf(tx.query, org, id)
    if (tag.label === from) return tag
    await relabelRoles(tx, org, { from, to: tag.label })
    const data: RelabelJob = { org, vault, epoch, operation, actor: admin.email, tag: tag.id, from }
    await backend.queue.send(tx, 'org-relabel', [{ id: operation, data, priority: 0 }])
    return tag
  })

/**
 * Removes a tag, from roles too. Memories keep the label, and so are seen by roles with `*` alone
 * until somebody allows it again or takes it off: a tag that goes must not open what it kept closed.
 * The same operation again finds it done.
 *
 * @throws Refusal `missing`.
 */
export const removeTag = (
  backend: { postgres: Postgres },
  { admin, org }: Acting,
  id: string,
  operation: string,
): Promise<void> =>
  changePolicy(backend, { admin, org }, tx =>
    removeOnce(tx, { org, operation }, async () => {
      const { label } = await tagOf(tx.query, org, id)
      await relabelRoles(tx, org, { from: label, to: null })
      await deleteTag(tx, id)
    }),
  )

async function tagOf(query: Query, org: string, id: string): Promise<TagRow> {
  const tag = await findTag(query, org, id)
  if (tag) return tag
  throw new Refusal('missing', 'No such tag', 'GET /v1/orgs/:orgId/tags lists them')
}

/**
 * Makes a label a tag's own, in the place of the one it has, so that nobody sees more by it: no memory
 * may bear it, whoever had it before, unless this tag did; nor may a role allow it that does not allow
 * the tag, once memories bear that.
 */
async function claimLabel(
  tx: Transaction,
  { org, vault }: { org: string; vault: string },
  { id, label: from, former }: TagRow,
  label: string,
): Promise<void> {
  requireOneTag(label)
  await takeFormerLabel(tx, org, label, id)
  if (!former.includes(label)) await requireUnborne(tx, { vault }, label)
  const roles = await listRoles(tx.query, org)
  const opened = roles.find(
    ({ allowedTags }) =>
      !['*', from].some(one => allowedTags.includes(one)) && allowedTags.includes(label),
  )
  if (!opened || !(await isBorne(tx, { vault }, [from, ...former]))) return
  throw new Refusal(
    'conflict',
    `The role ${opened.name} allows this label, and does not see what the tag is on`,
    'Change the role first, or choose another label: a new label shows nobody more than before',
  )
}

function requireOneTag(label: string): void {
  if (label !== '*') return
  throw new Refusal('invalid', 'label must not be *', 'In a role * stands for every tag')
}

/** What bears a label, be it of a tag that was renamed or is gone, must not pass for something else. */
async function requireUnborne(
  tx: Transaction,
  place: { vault: string },
  label: string,
): Promise<void> {
  if (!(await isBorne(tx, place, [label]))) return
  throw new Refusal(
    'conflict',
    'Memories bear this label that are not about this tag',
    'Those of a renamed tag get its new label in the background: try again in a moment. Others are listed by GET …/memories?tag=…: give them other tags, or choose another label',
  )
}

async function isBorne(
  { query }: Transaction,
  place: { vault: string },
  labels: readonly string[],
): Promise<boolean> {
  const sets = await tagSetsOf(query, place)
  return sets.some(({ tags, memories }) => memories > 0 && labels.some(one => tags.includes(one)))
}
