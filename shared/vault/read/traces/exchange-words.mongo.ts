import { memoryIdOf } from '#shared/core/ids.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import { findDocuments, idsFilter } from '#shared/storage/mongo/commands.ts'
import { idIndex } from '#shared/storage/mongo/indexes.ts'
import type { MemoryDocument } from '#shared/storage/mongo/documents.ts'

/** What was asked and answered in a call; null where nothing of it is stored. */
export type CallWords = { question: string | null; answer: string | null }

/**
 * The words of model calls, by the memories that were stored of each: deleted and expired ones are missing.
 *
 * @param chunksMax memories that are read of a call, from its first one
 * @returns by the id of the call; calls of which nothing is stored are missing
 */
export async function findExchangeWords(
  { memories }: Pick<Mongo, 'memories'>,
  calls: readonly { id: string; vault: string; epoch: number }[],
  { chunksMax, now }: { chunksMax: number; now: number },
): Promise<Map<string, CallWords>> {
  const byVault = Map.groupBy(calls, ({ vault }) => vault)
  const found = await Promise.all(
    [...byVault.values()].map(async own => {
      const ids = own.flatMap(({ id }) =>
        Array.from({ length: chunksMax }, (_, index) => memoryIdOf(id, index)),
      )
      return findDocuments(memories, idsFilter(own[0]!, ids), {
        projection: { text: 1, role: 1, piece: 1, operation: 1, expires_at: 1 },
        hint: idIndex,
      })
    }),
  )
  const rows = found.flat().filter(({ expires_at: end }) => !end || end.getTime() > now)
  const byCall = Map.groupBy(rows, ({ operation }) => operation)
  return new Map([...byCall].map(([id, exchange]) => [id, wordsOf(exchange)]))
}

function wordsOf(exchange: readonly MemoryDocument[]): CallWords {
  const ordered = exchange.toSorted((one, other) => (one._id < other._id ? -1 : 1))
  const ofRole = (role: MemoryDocument['role']): string | null => {
    const messages = Map.groupBy(
      ordered.filter(row => row.role === role),
      ({ _id, piece }) => piece?.message ?? _id,
    )
    const texts = [...messages.values()].map(pieces => pieces.map(({ text }) => text).join(''))
    return texts.length === 0 ? null : texts.join('\n\n')
  }
  return { question: ofRole('user'), answer: ofRole('assistant') }
}
