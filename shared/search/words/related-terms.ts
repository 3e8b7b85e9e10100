import kinds from '#shared/search/words/related/kinds.json' with { type: 'json' }
import near from '#shared/search/words/related/near.json' with { type: 'json' }
import same from '#shared/search/words/related/same.json' with { type: 'json' }
import { termsOf } from '#shared/search/words/index-terms.ts'

export type RelatedTerm = { term: string; /** Above 0 to 1. */ weight: number }

/**
 * Measured on the tuned split of the evaluation (`npm run bench -- recall`): with all at 1 the
 * recall is equal, but more unrelated rows are returned.
 */
const weights = { same: 1, kind: 0.5, example: 0.8, near: 0.6 }

const relations = new Map<string, Map<string, number>>()
const relatedByTerm = new Map<string, readonly RelatedTerm[]>()
const none: readonly RelatedTerm[] = []
const tables = buildTables()
let isBuilt = false

/**
 * Returns terms whose texts often answer a query with this one, highest weight first: synonyms, hyponyms and hypernyms
 * ("instrument" and "cello"), words of one scene ("wedding" and "honeymoon"). None for most words. The first call builds
 * the rest of the tables.
 */
export function relatedTerms(term: string): readonly RelatedTerm[] {
  const known = relatedByTerm.get(term)
  if (known) return known
  if (!isBuilt) tables.toArray()
  const others = relations.get(term)
  if (!others) return none
  const related = [...others]
    .map(([other, weight]): RelatedTerm => ({ term: other, weight }))
    .sort((a, b) => b.weight - a.weight)
  relatedByTerm.set(term, related)
  return related
}

/** Builds the tables in steps, so that no search waits for them: 0.2 s of CPU, most of it for stems. */
export function* buildRelatedTerms(): Generator<void, void> {
  // `yield*` would end the tables when this generator is not run to its end.
  while (!tables.next().done) yield
}

function* buildTables(): Generator<void, void> {
  for (const line of same) {
    addSynonyms(stemsOf(line))
    yield
  }
  for (const [lines, down, up] of [
    [kinds, weights.example, weights.kind],
    [near, weights.near, weights.near],
  ] as const) {
    for (const line of lines) {
      const [heads = '', members = ''] = line.split(':')
      addMembers(stemsOf(heads), stemsOf(members), { down, up })
      yield
    }
  }
  isBuilt = true
}

/** Relates the first word to the others; the closest come first. */
function addSynonyms([head, ...others]: string[]): void {
  for (const [i, other] of others.entries()) {
    const weight = weights.same * Math.max(0.5, 1 - 0.12 * i)
    addRelation(head!, other, weight)
    addRelation(other, head!, weight)
  }
}

function addMembers(
  heads: readonly string[],
  members: readonly string[],
  { down, up }: { down: number; up: number },
): void {
  for (const head of heads) {
    for (const member of members) {
      addRelation(head, member, down)
      addRelation(member, head, up)
    }
  }
}

function addRelation(one: string, other: string, weight: number): void {
  if (one === other) return
  const known = relations.get(one)
  if (!known) relations.set(one, new Map([[other, weight]]))
  else if (weight > (known.get(other) ?? 0)) known.set(other, weight)
}

/** Returns the first term of each word: the tables need no compounds. */
const stemsOf = (words: string): string[] =>
  words.split(' ').flatMap(word => termsOf(word).slice(0, 1))
