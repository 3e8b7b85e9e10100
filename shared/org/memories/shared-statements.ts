import { refusal } from '#shared/core/refusal.ts'
import { readPage, type CursorCodec, type Page } from '#shared/core/page.ts'
import {
  isOrganizationKey,
  toSharedVaultScope,
  type MemberScope,
} from '#shared/domain/member-scope.ts'
import { isPermitted, visibilityOf } from '#shared/domain/visibility.ts'
import { sharedByIds, type SharedMemory } from '#shared/org/memories/shared-memories.mongo.ts'
import {
  findSharing,
  statementsPage,
  updateSharing,
  type SharedStatement,
  type SharingPolicy,
  type StatementPosition,
} from '#shared/org/memories/shared-statements.postgres.ts'
import type { Caller } from '#shared/access/caller.ts'
import { recordAccountEvent } from '#shared/events/account-events.postgres.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import type { Stores } from '#shared/storage/stores.ts'

/** @throws Refusal `forbidden` for keys of no organization, and for the organization's own. */
export function requireMember({ memberScope }: Pick<Caller, 'memberScope'>): MemberScope {
  if (memberScope && !isOrganizationKey(memberScope)) return memberScope
  throw refusal('forbidden', 'keyOfNoMember')
}

/** A statement, with its memory where the author sees it. */
export type ListedStatement = SharedStatement & { sharedMemory: SharedMemory | null }

/**
 * A statement whose memory its author does not see is listed from the next multiple of this on: the time of a turn
 * would reveal whether it was compared with hidden memories.
 */
const unseenListedEveryMs = 300_000

/**
 * Reads a page of a member's statements, newest first; it may be short without being the last. A hidden memory and
 * one that waits for a person look the same, so that the list does not reveal hidden memories.
 *
 * @throws Refusal `invalid` for a cursor of another list; `unavailable` when a store is out of reach.
 */
export async function listStatements(
  backend: Stores & { cursors: CursorCodec; now: () => number },
  member: MemberScope,
  { limit, cursor }: { limit: number; cursor?: string | undefined },
): Promise<Page<ListedStatement>> {
  const { rows, next } = await readPage(
    backend.cursors,
    { limit, cursor, bound: ['statements', member.org, member.memberId] },
    (after: StatementPosition | undefined, count) =>
      statementsPage(
        backend.postgres.query,
        { org: member.org, member: member.memberId },
        { after, count },
      ),
    ({ saidAt, id }): StatementPosition => [saidAt.getTime(), id],
  )
  const memories = rows.map(({ memory }) => memory)
  const seenById = await findSeen(backend, member, memories)
  const listedAt = Math.floor(backend.now() / unseenListedEveryMs) * unseenListedEveryMs
  const listed = rows
    .map(row => ({ ...row, sharedMemory: seenById.get(row.memory) ?? null }))
    .filter(({ sharedMemory, recordedAt }) => sharedMemory || recordedAt.getTime() < listedAt)
  return { rows: listed, next }
}

export const seesMemory = async (
  backend: Pick<Stores, 'mongo'>,
  member: MemberScope,
  memory: string,
): Promise<boolean> => (await findSeen(backend, member, [memory])).has(memory)

async function findSeen(
  { mongo }: Pick<Stores, 'mongo'>,
  member: MemberScope,
  ids: readonly string[],
): Promise<Map<string, SharedMemory>> {
  if (ids.length === 0) return new Map()
  const visibility = visibilityOf(member)
  const memories = await sharedByIds(mongo, toSharedVaultScope(member), [...new Set(ids)])
  const seen = memories.filter(({ tags }) => isPermitted(visibility, tags))
  return new Map(seen.map(memory => [memory.id, memory]))
}

/** Sets whether a member's words are shared, from the next exchange on, with an event of the account. */
export const changeSharing = (
  { postgres }: { postgres: Postgres },
  { account, maskedKey, keyHash }: Pick<Caller, 'account' | 'maskedKey' | 'keyHash'>,
  { org, memberId, teamMemberId }: MemberScope,
  shares: boolean,
): Promise<SharingPolicy> =>
  postgres.transaction(async tx => {
    if (await updateSharing(tx, { org, member: memberId }, shares)) {
      const recorded = (value: boolean) => ({ team_member_id: teamMemberId, shares: value })
      await recordAccountEvent(tx, {
        account,
        actor: maskedKey,
        action: 'user.changed',
        subject: memberId,
        change: [recorded(!shares), recorded(shares)],
        organization: org,
      })
    }
    return findSharing(tx.query, keyHash)
  })
