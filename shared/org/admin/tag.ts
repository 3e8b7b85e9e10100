import { Refusal } from '#shared/core/errors.ts'
import { mintId } from '#shared/core/ids.ts'
import { isLabelRestorable, relabelHistory } from '#shared/org/memories/shared-writes.postgres.ts'
import { normalizeName } from '#shared/org/base/normalize.ts'
import { changePolicy, requireOrganization, digestOf } from '#shared/org/base/policy-change.ts'
import {
  createPartRecorder,
  removePart,
  requirePart,
  type OrgAdmin,
} from '#shared/org/base/policy-part.ts'
import type { Query, Transaction, Postgres } from '#shared/storage/postgres/connect.ts'
import { listRoles, relabelRoles } from '#shared/org/base/roles.postgres.ts'
import { listTagSets } from '#shared/vault/base/tag-sets.postgres.ts'
import {
  deleteTag,
  findTag,
  insertTag,
  removeFormerLabel,
  updateTag,
  type TagChange,
  type TagRow,
} from '#shared/org/base/tags.postgres.ts'
import type { RelabelJob } from '#shared/domain/job-payloads.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'

const labelTaken = 'The organization has a tag of this label already'

/**
 * Creates a tag. The same operation again answers with the tag it made.
 *
 * @param operation becomes the tag's id
 * @throws Refusal `missing`; `invalid` for a blank label and for `*`; `conflict` when there is one of
 *   that label.
 */
export const createTag = (
  backend: { postgres: Postgres },
  { admin, org }: OrgAdmin,
  operation: string,
  { label: givenLabel, question, examples, negatives }: TagChange & { label: string },
): Promise<TagRow> =>
  changePolicy(backend, { admin, org, conflictMessage: labelTaken }, async tx => {
    const label = normalizeName(givenLabel, 'label')
    const existing = await findTag(tx.query, org, operation)
    if (existing) return existing
    requireNotWildcard(label)
    // Memories may have the label already: they become visible to no more members until a role allows it.
    const owner = await removeFormerLabel(tx, org, label, operation)
    if (owner !== undefined) {
      await requireUnusedLabel(tx, await requireOrganization(tx.query, admin, org), label)
      await relabelHistory(tx, org, { from: label, to: owner })
    }
    await insertTag(tx, {
      id: operation,
      org,
      label,
      question: question ?? `Is this about ${label}?`,
      examples: examples ?? [],
      negatives: negatives ?? [],
    })
    const tag = await requireTag(tx.query, org, operation)
    await recordTagEvent(tx, { admin, org }, 'tag.created', { after: tag })
    return tag
  })

/**
 * Writes what is given. Roles that allow the tag allow it under a new label from the next request on;
 * memories get the new label by jobs, the last of them an hour later, and until then both labels permit
 * the same. A new label never makes more memories visible.
 *
 * @param operation the id of the request
 * @throws Refusal `missing`; `invalid` for a blank label and for `*`; `conflict` when another tag has
 *   that label, memories bear it that are not this tag's, or a role allows it that does not allow the tag.
 */
export const changeTag = (
  backend: { postgres: Postgres; queue: Queue },
  { admin, org }: OrgAdmin,
  id: string,
  { operation, label, ...others }: TagChange & { operation: string },
): Promise<TagRow> =>
  changePolicy(backend, { admin, org, conflictMessage: labelTaken }, async tx => {
    const before = await requireTag(tx.query, org, id)
    const { label: from } = before
    const change = { ...others, label: label && normalizeName(label, 'label') }
    const { vault, epoch } = await requireOrganization(tx.query, admin, org)
    if (change.label !== undefined && change.label !== from) {
      await claimLabel(tx, { org, vault }, before, change.label)
    }
    await updateTag(tx, id, change)
    const tag = await requireTag(tx.query, org, id)
    await recordTagEvent(tx, { admin, org }, 'tag.changed', { before, after: tag })
    if (tag.label === from) return tag
    await relabelRoles(tx, org, { from, to: tag.label })
    const data: RelabelJob = { org, vault, epoch, operation, actor: admin.email, tag: tag.id, from }
    await backend.queue.send(tx, 'org-relabel', [{ id: operation, data, priority: 0 }])
    return tag
  })

/**
 * Removes a tag, from roles too. Memories keep the label, so that only roles with `*` see them until a
 * role allows the label again or it is taken off them: removing a tag must not make memories visible.
 * Repeating the operation changes nothing.
 *
 * @throws Refusal `missing`.
 */
export const removeTag = (
  backend: { postgres: Postgres },
  { admin, org }: OrgAdmin,
  id: string,
  operation: string,
): Promise<void> =>
  removePart(backend, { admin, org }, operation, async tx => {
    const tag = await requireTag(tx.query, org, id)
    await relabelRoles(tx, org, { from: tag.label, to: null })
    await deleteTag(tx, id)
    await recordTagEvent(tx, { admin, org }, 'tag.deleted', { before: tag })
  })

/** Examples may be words of members: they are counted, and a digest differs when they do. */
const recordTagEvent = createPartRecorder<TagRow, 'tag.created' | 'tag.changed' | 'tag.deleted'>(
  ({ label, question, examples, negatives }) => ({
    label,
    examples: examples.length,
    negatives: negatives.length,
    sha256: digestOf([question, examples, negatives]),
  }),
)

/** @throws Refusal `missing`. */
export const requireTag = async (query: Query, org: string, id: string): Promise<TagRow> =>
  requirePart(await findTag(query, org, id), 'tag')

/**
 * Checks that a tag may take a label without making memories visible: no memory may have the label,
 * except by a former label of this tag; and once memories have the tag, or can be restored to it, no role
 * may allow the label that does not allow the tag. In what other memories can be restored to, the label of
 * the tag that it stood for replaces it, or where that is unknown one that no role allows.
 */
async function claimLabel(
  tx: Transaction,
  { org, vault }: { org: string; vault: string },
  { id, label: from, former }: TagRow,
  label: string,
): Promise<void> {
  requireNotWildcard(label)
  const owner = await removeFormerLabel(tx, org, label, id)
  if (!former.includes(label)) {
    await requireUnusedLabel(tx, { vault }, label)
    await relabelHistory(tx, org, { from: label, to: owner ?? mintId() })
  }
  const roles = await listRoles(tx.query, org)
  const exposingRole = roles.find(
    ({ allowedTags }) =>
      !['*', from].some(one => allowedTags.includes(one)) && allowedTags.includes(label),
  )
  if (!exposingRole) return
  const labels = [from, ...former]
  const isExposed =
    (await isLabelInUse(tx, { vault }, labels)) || (await isLabelRestorable(tx.query, org, labels))
  if (!isExposed) return
  throw new Refusal(
    'conflict',
    `The role ${exposingRole.name} allows this label, and does not see what the tag is on`,
    'Change the role first, or choose another label: a new label must not make memories visible',
  )
}

function requireNotWildcard(label: string): void {
  if (label !== '*') return
  throw new Refusal('invalid', 'label must not be *', 'In a role * stands for every tag')
}

/** What bears a label, be it of a tag that was renamed or is gone, must not pass for something else. */
async function requireUnusedLabel(
  tx: Transaction,
  scope: { vault: string },
  label: string,
): Promise<void> {
  if (!(await isLabelInUse(tx, scope, [label]))) return
  throw new Refusal(
    'conflict',
    'Memories bear this label that are not about this tag',
    'Those of a renamed tag get its new label in the background: try again in a moment. Others are listed by GET …/memories?tag=…: give them other tags, or choose another label',
  )
}

async function isLabelInUse(
  { query }: Transaction,
  scope: { vault: string },
  labels: readonly string[],
): Promise<boolean> {
  const sets = await listTagSets(query, scope)
  return sets.some(({ tags, memories }) => memories > 0 && labels.some(one => tags.includes(one)))
}
