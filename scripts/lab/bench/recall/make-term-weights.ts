/**
 * Writes shared/search/words/related/weights.json: the weights of common words by their rank in the
 * o200k_base vocabulary. Its merges are in the order of their frequency in the training texts, so a
 * word's rank stands for its frequency, in any language.
 */
import { writeFileSync } from 'node:fs'
import ranks from 'gpt-tokenizer/bpeRanks/o200k_base'
import { isMarkerTerm, termsOf } from '#shared/search/words/index-terms.ts'

/** Words of higher ranks are not in the table: their weight is 1. */
const rankMax = 30_000
/** Ranks of weight 0 and 1. */
const zeroWeightRank = 150
const fullWeightRank = 50_000

const rankByTerm = new Map<string, number>()
for (const [rank, token] of ranks.entries()) {
  if (rank >= rankMax) break
  if (typeof token !== 'string' || !/^ \p{L}{2,}$/u.test(token)) continue
  for (const term of termsOf(token.slice(1).toLowerCase())) {
    const counts = term.length > 1 && !term.endsWith('*') && !isMarkerTerm(term)
    if (counts && !rankByTerm.has(term)) rankByTerm.set(term, rank)
  }
}

const termsByWeight: Record<string, string[]> = {}
for (const [term, rank] of rankByTerm) {
  const weight = Math.log(rank / zeroWeightRank) / Math.log(fullWeightRank / zeroWeightRank)
  const band = Math.min(0.95, Math.max(0.1, weight)).toFixed(1)
  termsByWeight[band] ??= []
  termsByWeight[band].push(term)
}

const lines = Object.entries(termsByWeight)
  .sort(([one], [other]) => Number(one) - Number(other))
  .map(([band, terms]) => [band, terms.sort().join(' ')])
const file = new URL('../../../../shared/search/words/related/weights.json', import.meta.url)
writeFileSync(file, `${JSON.stringify(Object.fromEntries(lines), null, 2)}\n`)
