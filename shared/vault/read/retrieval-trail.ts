import type { MemberScope } from '#shared/domain/member-scope.ts'

export type RetrievalTrail = {
  /** Notes, without making the answer wait, what the shared memory gives a member and keeps from them. */
  record(member: MemberScope): void
  /** Resolves when everything recorded so far is written, or given up. */
  flush(): Promise<void>
}
