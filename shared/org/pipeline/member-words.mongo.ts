import type { TurnMessage } from '#shared/domain/job-payloads.ts'
import { refuseWhenUnreachable, type Mongo } from '#shared/storage/mongo/connect.ts'
import { deadline } from '#shared/storage/mongo/deadline.ts'
import { idIndex } from '#shared/storage/mongo/indexes.ts'

/** Reads the messages of one session in a member's vault by the ids of their memories, oldest first. */
export async function memberWordsByIds(
  { memories }: Pick<Mongo, 'memories'>,
  memberSession: {
    vault: string
    epoch: number
    session: string | null
    sessionEpoch: number
  },
  ids: readonly string[],
): Promise<TurnMessage[]> {
  const { vault, epoch, session, sessionEpoch } = memberSession
  const rows = await memories
    .find(
      {
        vault: { $eq: vault },
        epoch: { $eq: epoch },
        session: { $eq: session ?? '' },
        session_epoch: { $eq: sessionEpoch },
        _id: { $in: [...ids] },
      },
      {
        projection: { role: 1, text: 1, at: 1, speaker: 1 },
        hint: idIndex,
        signal: deadline(memories),
      },
    )
    .toArray()
    .catch(refuseWhenUnreachable)
  return rows
    .toSorted((a, b) => a.at.getTime() - b.at.getTime() || (a._id < b._id ? -1 : 1))
    .flatMap(({ role, text, speaker }) =>
      role === 'user' || role === 'assistant'
        ? [{ role, text, ...(speaker !== undefined && { speaker }) }]
        : [],
    )
}
