import { Refusal } from '#shared/core/errors.ts'
import { isUuid } from '#shared/core/ids.ts'
import { noSuchSharedMemory } from '#shared/org/memories/shared-change.ts'
import type { OrgRow } from '#shared/org/base/orgs.postgres.ts'
import type { OrgVault } from '#shared/domain/job-payloads.ts'
import { sortUniqueTags } from '#shared/domain/tags.ts'

/** The current shared vault of an organization. */
export const toOrgVault = ({ id, vault, epoch }: OrgRow): OrgVault => ({ org: id, vault, epoch })

/**
 * The id of a shared memory from a request, in any case.
 *
 * @throws Refusal `missing` for what is no id at all.
 */
export function parseSharedMemoryId(text = ''): string {
  if (isUuid(text)) return text.toLowerCase()
  throw noSuchSharedMemory()
}

/**
 * Tags from a request: white space around them and their order do not matter. They need not
 * be defined: a tag that no role allows hides a memory from all but those who see everything.
 *
 * @throws Refusal `invalid` for an empty one, and for `*`, which is every tag and none.
 */
export function parseTags(tags: readonly string[]): string[] {
  const trimmed = tags.map(tag => tag.normalize('NFC').trim())
  if (trimmed.includes('')) throw new Refusal('invalid', 'tags holds an empty tag')
  if (trimmed.includes('*')) {
    throw new Refusal('invalid', '* is not a tag', 'Roles allow * to see every tag there is')
  }
  return sortUniqueTags(trimmed)
}
