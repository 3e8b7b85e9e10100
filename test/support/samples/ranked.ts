import type { Memory } from '#shared/domain/memory.ts'
import { embed, localEmbedder } from '#shared/models/local-embedder.ts'
import { createVaultIndex, type VaultIndex } from '#shared/search/index/vault-index.ts'
import { selectQuestions } from '#shared/search/query/select-questions.ts'
import type { EmbeddedQuestion } from '#shared/search/ranking/rank-question.ts'
import { termsOf } from '#shared/search/words/index-terms.ts'

/** When tests of ranking search: on a Friday. */
export const now = Date.UTC(2026, 10, 20, 15)

export type Row = Partial<Memory> & { text: string; vector?: Float32Array }

/** An index of the dimension of the local embedder, and with its vectors where rows have none; rows without a time are a day old, a minute apart. */
export function indexOf(rows: readonly Row[]): VaultIndex {
  const index = createVaultIndex({ dimension: localEmbedder().dimension, termsOf })
  index.put(
    rows.map((row, i) => ({
      id: `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`,
      tier: 1 as const,
      role: 'user' as const,
      at: now - 86_400_000 + i * 60_000,
      tokens: Math.ceil(row.text.length / 4),
      vector: embed(row.text),
      ...row,
    })),
  )
  return index
}

/** What is searched for in a message, with vectors of the local embedder. */
export const questionsOf = (message: string): EmbeddedQuestion[] =>
  selectQuestions(message).map(one => ({
    ...one,
    vector: one.kind === 'name' ? null : embed(one.text),
  }))
