import type { Calibration } from '#shared/domain/embedder.ts'
import { measured, type Weights } from '#shared/search/ranking/fuse.ts'
import { rank } from '#shared/search/ranking/rank.ts'
import { isMark, termsOf } from '#shared/search/words/words.ts'
import type { Vault } from '#scripts/bench/recall/vault.ts'

/** Ids of memories, best first. */
export type Method = (
  vault: Vault,
  question: Vault['questions'][number],
  calibration: Calibration,
) => string[]

/** Answers looked at; recall is measured up to 20. */
const limit = 50

const fusedAlone: Weights = {
  ...measured,
  related: 0,
  slip: 0,
  lentWords: 0,
  lentSimilarity: 0,
  time: 0,
  name: 0,
  kind: 0,
}

/** The parts of recall alone, then together: what each is worth. */
export const methods: Readonly<Record<string, Method>> = {
  'BM25 alone': ({ image }, { text }) => {
    const { words, count, memory } = image.blocks[1]
    const terms = [...new Set(termsOf(text))].filter(term => !isMark(term))
    const weighted = terms.map(term => {
      const holders = words.frequency(term)
      return { term, weight: Math.log(1 + (count - holders + 0.5) / (holders + 0.5)) }
    })
    const scores = new Float32Array(count)
    const rows = Array.from(words.scores(weighted, 0, count, scores))
    rows.sort((a, b) => scores[b]! - scores[a]! || a - b)
    return rows.slice(0, limit).map(row => memory(row).id)
  },
  'vectors alone': ({ image }, { vector }) => {
    const { nearest, memory } = image.blocks[1]
    return Array.from(nearest(vector, limit).rows, row => memory(row).id)
  },
  'both fused': ranked(fusedAlone),
  'with related words': ranked({ ...fusedAlone, related: measured.related, slip: measured.slip }),
  'with everything': ranked(measured),
}

function ranked(weights: Weights): Method {
  return ({ image, now }, { text, vector }, calibration) => {
    const question = { text, vector, now, limit, floor: false, calibration }
    return rank([image], question, weights).map(({ memory }) => memory.id)
  }
}
