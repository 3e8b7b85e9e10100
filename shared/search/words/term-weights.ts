import weights from '#shared/search/words/related/weights.json' with { type: 'json' }

const weightByTerm = new Map<string, number>()
for (const [weight, terms] of Object.entries(weights)) {
  for (const term of terms.split(' ')) weightByTerm.set(term, Number(weight))
}

/**
 * Returns the weight of a term by its frequency in general language, 0.1 for "get" to 1 for "trombone": a small vault has too
 * few texts for an idf. The table was derived from the order of the o200k_base vocabulary, which approximates the
 * frequency in web texts.
 */
export function termWeight(term: string): number {
  // Roots of inflected words and single ideographs accompany more specific terms.
  if (term.endsWith('*')) return 0.6
  if (/^\P{ASCII}$/u.test(term)) return 0.4
  return weightByTerm.get(term) ?? 1
}

/** Whether a term is in the table of common words, and so is not misspelt. */
export const isCommonWord = (term: string): boolean => weightByTerm.has(term)
