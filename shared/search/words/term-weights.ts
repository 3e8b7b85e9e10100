import weights from '#shared/search/words/related/weights.json' with { type: 'json' }

const weightByTerm = new Map<string, number>()
for (const [weight, terms] of Object.entries(weights)) {
  for (const term of terms.split(' ')) weightByTerm.set(term, Number(weight))
}

/**
 * How much a term tells in any text, 0.1 for "get" to 1 for "trombone": what a small vault cannot
 * learn from its own few texts. The table was derived from the order of words in the o200k_base
 * vocabulary, which is near their frequency in the texts of the web.
 */
export function termWeight(term: string): number {
  // Roots of inflected words and single ideographs come beside terms that say more.
  if (term.endsWith('*')) return 0.6
  if (/^\P{ASCII}$/u.test(term)) return 0.4
  return weightByTerm.get(term) ?? 1
}

/** Whether a term is in the table of common words, and so no slip of spelling. */
export function isCommonWord(term: string): boolean {
  return weightByTerm.has(term)
}
