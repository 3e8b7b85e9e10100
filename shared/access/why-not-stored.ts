import type { KeyMode } from '#shared/access/key.ts'
import { isOrganizationKey, type MemberScope } from '#shared/domain/member-scope.ts'

/** Why a key that may not store does not, and what would. */
export function whyNotStored({
  mode,
  memberScope,
}: {
  mode: KeyMode
  memberScope: MemberScope | null
}): [reason: string, hint: string] {
  if (memberScope && isOrganizationKey(memberScope))
    return ['The key of an organization itself does not store memory', 'Use the key of a member']
  return [
    `This key is used with :${mode}, which does not store memory`,
    'Use the key without a suffix or with :write',
  ]
}
