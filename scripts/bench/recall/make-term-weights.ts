/**
 * Writes shared/search/words/related/weights.json: how much common words tell, by the place they have in
 * the o200k_base vocabulary. Merges are numbered in the order of their frequency in the texts the
 * vocabulary was learnt from, so a word's number stands for how common it is, in any language.
 */
import { writeFileSync } from 'node:fs'
import ranks from 'gpt-tokenizer/bpeRanks/o200k_base'
import { isMarkerTerm, termsOf } from '#shared/search/words/index-terms.ts'

/** Words after this one are left to count in full. */
const rankMax = 30_000
/** Ranks at which a word tells nothing, and everything. */
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
const file = new URL('../../../shared/search/words/related/weights.json', import.meta.url)
writeFileSync(file, `${JSON.stringify(Object.fromEntries(lines), null, 2)}\n`)
