import weights from '#shared/recall/related/weights.json' with { type: 'json' }

const known = new Map<string, number>()
for (const [weight, terms] of Object.entries(weights)) {
  for (const term of terms.split(' ')) known.set(term, Number(weight))
}

/** How much a term tells at all, 0.1 to 1. */
export function weightOf(term: string): number {
  if (term.endsWith('*')) return 0.6
  if (/^\P{ASCII}$/u.test(term)) return 0.4
  return known.get(term) ?? 1
}
