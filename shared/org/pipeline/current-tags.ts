import type { OrgPolicy } from '#shared/org/base/org-policy.postgres.ts'
import type { TaggedFact } from '#shared/org/base/org-turns.postgres.ts'

/**
 * The current labels of the tags of a fact. The label of a deleted tag stays: then only roles with `*` see
 * the memory. Where another tag has that label now, and would make the memory visible, the id of the
 * deleted tag is used instead.
 */
export function currentTags(
  { tags }: Pick<OrgPolicy, 'tags'>,
  fact: Pick<TaggedFact, 'tags' | 'tagIds'>,
): string[] {
  const labels = new Map(tags.map(({ id, label }) => [id, label]))
  const currentLabels = new Set(tags.flatMap(({ label, former }) => [label, ...former]))
  return fact.tagIds.map((id, index) => {
    const label = fact.tags[index]!
    return labels.get(id) ?? (currentLabels.has(label) ? id : label)
  })
}
