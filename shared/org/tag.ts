import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/errors.ts'
import type { Admin } from '#shared/key/admin.ts'
import { nameAsked } from '#shared/org/named.ts'
import { changePolicy, organizationOf } from '#shared/org/policy.ts'
import type { RelabelJob } from '#shared/org/relabel.ts'
import type { Query, Transaction } from '#shared/postgres/connect.ts'
import { relabelRoles } from '#shared/postgres/roles.ts'
import { tagSetsOf } from '#shared/postgres/shared-tag-sets.ts'
import {
  deleteTag,
  findTag,
  insertTag,
  listTags,
  takeFormerLabel,
  updateTag,
  type TagChange,
  type TagRow,
} from '#shared/postgres/tags.ts'

type Acting = { admin: Admin; org: string }

const taken = 'The organization has a tag of this label already'

/**
 * Tags of an organization, oldest first.
 *
 * @throws Refusal `missing`.
 */
export async function tagsOfOrg(
  { postgres }: Pick<Backend, 'postgres'>,
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
  backend: Pick<Backend, 'postgres'>,
  { admin, org }: Acting,
  operation: string,
  { label: named, question, examples, negatives }: TagChange & { label: string },
): Promise<TagRow> =>
  changePolicy(backend, { admin, org, taken }, async tx => {
    const label = nameAsked(named, 'label')
    const made = await findTag(tx.query, org, operation)
    if (made) return made
    await claimLabel(tx, { admin, org }, label, operation)
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
 * memories get the new label by a job, and whoever may see the one may see the other meanwhile.
 *
 * @param operation the id of the request
 * @throws Refusal `missing`; `invalid` for a blank label and for `*`; `conflict` when another tag has
 *   that label.
 */
export const changeTag = (
  backend: Pick<Backend, 'postgres' | 'queue'>,
  { admin, org }: Acting,
  id: string,
  { operation, label, ...others }: TagChange & { operation: string },
): Promise<TagRow> =>
  changePolicy(backend, { admin, org, taken }, async tx => {
    const { label: from } = await tagOf(tx.query, org, id)
    const change = { ...others, label: label && nameAsked(label, 'label') }
    if (change.label !== undefined) await claimLabel(tx, { admin, org }, change.label, id)
    await updateTag(tx, id, change)
    const tag = await tagOf(tx.query, org, id)
    if (tag.label === from) return tag
    await relabelRoles(tx, org, { from, to: tag.label })
    const { vault, epoch } = await organizationOf(tx.query, admin, org)
    const data: RelabelJob = { org, vault, epoch, operation, actor: admin.email, tag: tag.id, from }
    await backend.queue.send(tx, 'org-relabel', [{ id: operation, data, priority: 0 }])
    return tag
  })

/**
 * Removes a tag, from roles too. Memories keep the label, and so are seen by roles with `*` alone
 * until somebody allows it again or takes it off: a tag that goes must not open what it kept closed.
 *
 * @throws Refusal `missing`.
 */
export const removeTag = (
  backend: Pick<Backend, 'postgres'>,
  { admin, org }: Acting,
  id: string,
): Promise<void> =>
  changePolicy(backend, { admin, org }, async tx => {
    const { label } = await tagOf(tx.query, org, id)
    await relabelRoles(tx, org, { from: label, to: null })
    await deleteTag(tx, id)
  })

async function tagOf(query: Query, org: string, id: string): Promise<TagRow> {
  const tag = await findTag(query, org, id)
  if (tag) return tag
  throw new Refusal('missing', 'No such tag', 'GET /v1/orgs/:orgId/tags lists them')
}

/**
 * Makes a label a tag's own. One that another tag had before is free again once no memory bears it: what
 * is still to be relabelled must not pass for something else.
 */
async function claimLabel(
  tx: Transaction,
  { admin, org }: Acting,
  label: string,
  tag: string,
): Promise<void> {
  if (label === '*') {
    throw new Refusal('invalid', 'label must not be *', 'In a role * stands for every tag')
  }
  if (!(await takeFormerLabel(tx, org, label, tag))) return
  const sets = await tagSetsOf(tx.query, await organizationOf(tx.query, admin, org))
  if (!sets.some(({ tags, memories }) => memories > 0 && tags.includes(label))) return
  throw new Refusal(
    'conflict',
    'Memories still bear this label of a tag that was renamed',
    'They get its new label in the background: try again in a moment',
  )
}
