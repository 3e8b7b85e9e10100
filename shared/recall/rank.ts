import type { Calibration } from '#shared/embedding/embedder.ts'
import { tiers, type Memory, type Tier } from '#shared/memory/memory.ts'
import type { Block } from '#shared/recall/block.ts'
import type { Image } from '#shared/recall/image.ts'
import { termsOf } from '#shared/recall/words.ts'

export type Question = {
  text: string
  vector: Float32Array
  now: number
  limit: number
  tiers?: readonly Tier[]
  importance?: number
  /** Leave out whatever is not relevant. */
  floor: boolean
  calibration: Calibration
}

export type Found = { memory: Memory; score: number; relevance: number }

type Candidate = { block: Block; row: number; cosine: number; words: number }

/** Ranks by similarity and shared words, best first; identical texts once, the newest of them. */
export function rank(images: readonly Image[], question: Question): Found[] {
  const terms = [...new Set(termsOf(question.text))]
  const asked = question.tiers ?? tiers
  const blocks = images.flatMap(({ blocks }) => asked.map(tier => blocks[tier]))
  const candidates = blocks.flatMap(block => candidatesOf(block, terms, question))
  const most = Math.max(1e-6, ...candidates.map(({ words }) => words))
  const { unrelated, same, floor } = question.calibration
  const found = candidates
    .map(({ block, row, cosine, words }) => {
      const score = Math.min(1, Math.max(0, (cosine - unrelated) / (same - unrelated)))
      return { block, row, score, shares: words > 0, relevance: score + words / most / 2 }
    })
    .filter(({ score, shares }) => score >= floor || shares)
    .toSorted(
      (one, other) =>
        other.relevance - one.relevance || other.block.at(other.row) - one.block.at(one.row),
    )
  const seen = new Set<number>()
  return found
    .filter(({ block, row }) => {
      const hash = block.textHash(row)
      return !seen.has(hash) && seen.add(hash)
    })
    .slice(0, question.limit)
    .map(({ block, row, score, relevance }) => ({ memory: block.memory(row), score, relevance }))
}

function candidatesOf(block: Block, terms: string[], question: Question): Candidate[] {
  if (block.count === 0) return []
  const weighted = terms.map(term => ({
    term,
    weight: Math.log(1 + block.count / (1 + block.words.frequency(term))),
  }))
  const words = block.words.scores(weighted, 0, block.count)
  const rows = new Set<number>()
  const best = [...words.keys()].filter(row => words[row]! > 0)
  best.sort((one, other) => words[other]! - words[one]!)
  for (const row of best.slice(0, question.limit * 2)) rows.add(row)
  const near = block.nearest(question.vector, Math.min(block.count, question.limit * 2))
  for (const row of near.rows) rows.add(row)
  const kept = [...rows].filter(
    row => question.importance === undefined || (block.importance(row) ?? 0) >= question.importance,
  )
  const cosines = block.cosines(question.vector, kept)
  return kept.map((row, index) => ({ block, row, cosine: cosines[index]!, words: words[row]! }))
}
