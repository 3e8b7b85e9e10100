import type { MemberScope } from '#shared/domain/member-scope.ts'
import type { RecallFilters, RecallQuestion } from '#shared/vault/read/search/recall.ts'

/** One request of a member that read shared memory. */
export type Retrieval = {
  request: 'search' | 'prepare' | 'date-search'
  /** Ids of the shared memories in the answer, best first. */
  returned: readonly string[]
  /** The question, which is looked up again without the wall; null: all of a span of time, or a rebuilt block. */
  question:
    | (Partial<RecallFilters> &
        Pick<RecallQuestion, 'text' | 'within'> & {
          /** Rows; without it as many as have to do with the words. */
          limit?: number
        })
    | null
}

export type RetrievalTrail = {
  /** Records, without delaying the answer, what a member was given of the shared memory. */
  record(member: MemberScope, retrieval: Retrieval): void
  /** Resolves when everything recorded so far is written or has failed. */
  flush(): Promise<void>
}

/** The ids of the memories that are shared ones: these alone have tags. */
export const sharedIdsOf = (
  memories: readonly { id: string; tags?: readonly string[] }[],
): string[] => memories.filter(({ tags }) => tags !== undefined).map(({ id }) => id)

/** Records the block of a conversation, or the profile, that a member asks for. */
export function recordPrepared(
  { retrievals }: { retrievals: RetrievalTrail },
  { memberScope }: { memberScope: MemberScope | null },
  told: Parameters<typeof sharedIdsOf>[0],
  question: Retrieval['question'],
): void {
  if (!memberScope) return
  retrievals.record(memberScope, { request: 'prepare', returned: sharedIdsOf(told), question })
}
