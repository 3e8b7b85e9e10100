import type { VaultScope } from '#shared/domain/memory.ts'

/**
 * Who a member key speaks for and what they may see of the shared memory, as it was when the request
 * was authenticated. It is read with the key and kept no longer than the request, so that a change to
 * roles, tags, keys or users counts from the next request on, on every process.
 */
export type MemberScope = {
  org: string
  /** The user's id; of the organization's own key, which is nobody, the organization's. */
  memberId: string
  /** How the organization calls the member: the author of what they say. */
  teamMemberId: string
  /** The shared vault, as a vault of its own. */
  orgVault: string
  orgEpoch: number
  orgRevision: number
  /** The vault space that all shared memories are in; null as long as nobody has looked. */
  orgSpace: string | null
  /**
   * Labels of tags that the roles allow, without `*`, former labels of renamed tags among them. A
   * memory with several tags needs all of them.
   */
  allowedTags: string[]
  /** A role allows every tag there is and will be. */
  wildcard: boolean
  /** Rises with every change to who is a member and who may see what. */
  policyVersion: number
}

/** Whether it is the organization's own key, which is nobody's: there is no author of what it would store. */
export const isOrganizationKey = ({
  org,
  memberId,
}: Pick<MemberScope, 'org' | 'memberId'>): boolean => memberId === org

/** The shared vault of a member's organization, as it was when the request was authenticated. */
export const toSharedVaultScope = ({
  orgVault,
  orgEpoch,
  orgRevision,
}: MemberScope): VaultScope => ({
  vault: orgVault,
  epoch: orgEpoch,
  revision: orgRevision,
})
