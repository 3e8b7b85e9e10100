import type { VaultScope } from '#shared/domain/memory.ts'

/**
 * A key's member and what they may see of the shared memory. It is read with the key of each request, so that a change to
 * roles, tags, keys or users applies from the next request on, in every process.
 */
export type MemberScope = {
  org: string
  /** The user's id; for the organization's own key, the organization's id. */
  memberId: string
  /** The organization's name for the member, as an author. */
  teamMemberId: string
  /** The vault id of the shared memory. */
  orgVault: string
  orgEpoch: number
  orgRevision: number
  /** The vault space of all shared memories; null until it was looked up. */
  orgSpace: string | null
  /** Labels of the tags that the roles allow, without `*`, with the former labels of renamed tags. */
  allowedTags: string[]
  /** A role allows every tag, future ones included. */
  wildcard: boolean
  /** Increases with every change to members or to what they may see. */
  policyVersion: number
}

/** Whether it is the organization's own key, without a member. */
export const isOrganizationKey = ({
  org,
  memberId,
}: Pick<MemberScope, 'org' | 'memberId'>): boolean => memberId === org

export const toSharedVaultScope = ({
  orgVault,
  orgEpoch,
  orgRevision,
}: MemberScope): VaultScope => ({ vault: orgVault, epoch: orgEpoch, revision: orgRevision })
