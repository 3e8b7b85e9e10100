import type { MemberScope } from '#shared/domain/member-scope.ts'

export type RetrievalTrail = {
  /** Records, without delaying the answer, which shared memories a member may and may not see. */
  record(member: MemberScope): void
  /** Resolves when everything recorded so far is written or has failed. */
  flush(): Promise<void>
}
