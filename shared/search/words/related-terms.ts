import kinds from '#shared/search/words/related/kinds.json' with { type: 'json' }
import near from '#shared/search/words/related/near.json' with { type: 'json' }
import same from '#shared/search/words/related/same.json' with { type: 'json' }
import { termsOf } from '#shared/search/words/index-terms.ts'

export type RelatedTerm = { term: string; /** Above 0 to 1. */ weight: number }

/**
 * Measured on the tuned split of the evaluation (scripts/bench/recall-quality.ts): with all at 1 the
 * recall is equal, but more unrelated rows are returned.
 */
const weights = { same: 1, kind: 0.5, example: 0.8, near: 0.6 }

const relations = new Map<string, Map<string, number>>()

/**
 * Terms whose texts often answer a query with this one, highest weight first: synonyms, hyponyms and
 * hypernyms ("instrument" and "cello"), words of one scene ("wedding" and "honeymoon"). Empty for
 * most words.
 */
export function relatedTerms(term: string): readonly RelatedTerm[] {
  return relatedByTerm.get(term) ?? []
}

function addRelation(one: string, other: string, weight: number) {
  if (one === other) return
  const known = relations.get(one)
  if (!known) relations.set(one, new Map([[other, weight]]))
  else if (weight > (known.get(other) ?? 0)) known.set(other, weight)
}

/** The first term of each word: a compound is not needed in the tables. */
const stemsOf = (words: string): string[] =>
  words.split(' ').flatMap(word => termsOf(word).slice(0, 1))

for (const line of same) {
  const [head, ...others] = stemsOf(line)
  for (const [i, other] of others.entries()) {
    // The tables list the closest words first.
    const near = weights.same * Math.max(0.5, 1 - 0.12 * i)
    addRelation(head!, other, near)
    addRelation(other, head!, near)
  }
}
for (const [lines, down, up] of [
  [kinds, weights.example, weights.kind],
  [near, weights.near, weights.near],
] as const) {
  for (const line of lines) {
    const [heads = '', members = ''] = line.split(':')
    for (const head of stemsOf(heads)) {
      for (const member of stemsOf(members)) {
        addRelation(head, member, down)
        addRelation(member, head, up)
      }
    }
  }
}

const relatedByTerm = new Map(
  [...relations].map(([term, others]) => [
    term,
    [...others]
      .map(([other, weight]): RelatedTerm => ({ term: other, weight }))
      .sort((a, b) => b.weight - a.weight),
  ]),
)
