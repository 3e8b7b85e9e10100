import { Refusal } from '#shared/core/errors.ts'
import { refusal } from '#shared/core/refusal.ts'
import { mintId } from '#shared/core/ids.ts'
import type { RelabelJob } from '#shared/domain/job-payloads.ts'
import { normalizeName } from '#shared/org/base/normalize.ts'
import { digestOf, requireOrganization, type OrgAdmin } from '#shared/org/base/policy-change.ts'
import { policyResource } from '#shared/org/base/policy-resource.ts'
import { relabelRoles, roleRows } from '#shared/org/base/roles.postgres.ts'
import {
  insertTag,
  removeFormerLabel,
  tagRows,
  updateTag,
  type TagChange,
  type TagRow,
} from '#shared/org/base/tags.postgres.ts'
import { isLabelRestorable, relabelHistory } from '#shared/org/memories/shared-writes.postgres.ts'
import type { Postgres, Transaction } from '#shared/storage/postgres/connect.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import { listTagSets } from '#shared/vault/base/tag-sets.postgres.ts'

const tags = policyResource({
  name: 'tag',
  rows: tagRows,
  conflictMessage: 'The organization has a tag of this label already',
  // Examples may be words of members: events hold their number and a digest.
  toRecorded: ({ label, question, examples, negatives }: TagRow) => ({
    label,
    examples: examples.length,
    negatives: negatives.length,
    sha256: digestOf([question, examples, negatives]),
  }),
})

export const { require: requireTag } = tags

/**
 * Creates a tag. Memories that have the label already become visible to no more members until a role allows it.
 *
 * @param id the operation of the request
 * @throws Refusal as `policyResource`; `invalid` for a blank label and for `*`.
 */
export const createTag = (
  backend: { postgres: Postgres },
  { admin, org }: OrgAdmin,
  id: string,
  { label: givenLabel, question, examples = [], negatives = [] }: TagChange & { label: string },
): Promise<TagRow> =>
  tags.create(backend, { admin, org }, id, async tx => {
    const label = parseLabel(givenLabel)
    const owner = await removeFormerLabel(tx, org, label, id)
    if (owner !== undefined) {
      await requireUnusedLabel(tx, await requireOrganization(tx.query, admin, org), label)
      await relabelHistory(tx, org, { from: label, to: owner })
    }
    const asked = question ?? defaultQuestion(label)
    await insertTag(tx, { id, org, label, question: asked, examples, negatives })
  })

export const defaultQuestion = (label: string): string => `Is this about ${label}?`

/** @throws Refusal `invalid` for a blank label and for `*`. */
export function parseLabel(given: string): string {
  const label = normalizeName(given, 'label')
  requireNotWildcard(label)
  return label
}

/**
 * Changes the given fields. Roles allow a new label from the next request on. Jobs give it to memories, the last of
 * them an hour later, and until then both labels permit the same. A new label never makes more memories visible.
 *
 * @param operation the id of the request
 * @throws Refusal as `policyResource`; `invalid` for a blank label and for `*`; `conflict` when memories have the
 *   label that are not this tag's, or a role allows it that does not allow the tag.
 */
export const changeTag = (
  backend: { postgres: Postgres; queue: Queue },
  { admin, org }: OrgAdmin,
  id: string,
  { operation, label: givenLabel, ...others }: TagChange & { operation: string },
): Promise<TagRow> =>
  tags.change(backend, { admin, org }, id, async (tx, before) => {
    const { id: tag, label: from } = before
    const label = givenLabel && normalizeName(givenLabel, 'label')
    if (label === undefined || label === from) return updateTag(tx, id, others)
    const { vault, epoch } = await requireOrganization(tx.query, admin, org)
    await claimLabel(tx, { org, vault }, before, label)
    await updateTag(tx, id, { ...others, label })
    await relabelRoles(tx, org, { from, to: label })
    const data: RelabelJob = { org, vault, epoch, operation, actor: admin.email, tag, from }
    await backend.queue.send(tx, 'org-relabel', [{ id: operation, data, priority: 0 }])
  })

/**
 * Removes a tag, from roles too. Memories keep the label, so that only roles with `*` see them until a role allows
 * the label again or an admin takes it off them.
 *
 * @throws Refusal as `policyResource`.
 */
export const removeTag = async (
  backend: { postgres: Postgres },
  scope: OrgAdmin,
  id: string,
  operation: string,
): Promise<void> =>
  void (await tags.remove(backend, scope, id, operation, (tx, { label: from }) =>
    relabelRoles(tx, scope.org, { from, to: null }),
  ))

/**
 * Checks that a tag may take a label without making memories visible: no memory may have the label, except as a
 * former label of this tag; and where memories have the tag, or can be restored to it, no role may allow the label
 * without the tag. In the history of other memories the label is replaced by the one that it stood for, or by one
 * that no role allows.
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
  const roles = await roleRows.list(tx.query, org)
  const exposingRole = roles.find(
    ({ allowedTags }) =>
      !['*', from].some(one => allowedTags.includes(one)) && allowedTags.includes(label),
  )
  if (!exposingRole) return
  const labels = [from, ...former]
  const isExposed =
    (await isLabelInUse(tx, { vault }, labels)) || (await isLabelRestorable(tx.query, org, labels))
  if (!isExposed) return
  throw refusal('conflict', 'roleExposed', { name: exposingRole.name })
}

function requireNotWildcard(label: string): void {
  if (label !== '*') return
  throw new Refusal('invalid', 'label must not be *', 'In a role * stands for every tag')
}

/** Memories with the label of a renamed or removed tag must not pass for memories of another. */
async function requireUnusedLabel(
  tx: Transaction,
  scope: { vault: string },
  label: string,
): Promise<void> {
  if (!(await isLabelInUse(tx, scope, [label]))) return
  throw refusal('conflict', 'labelOnOthers')
}

async function isLabelInUse(
  { query }: Transaction,
  scope: { vault: string },
  labels: readonly string[],
): Promise<boolean> {
  const sets = await listTagSets(query, scope)
  return sets.some(({ tags, memories }) => memories > 0 && labels.some(one => tags.includes(one)))
}
