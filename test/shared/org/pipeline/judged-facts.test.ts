import t from 'tap'
import type { BatchFact } from '#shared/org/pipeline/batch-facts.ts'
import { JudgedFacts } from '#shared/org/pipeline/compare-facts.ts'
import type { NearMemory } from '#shared/org/pipeline/nearest-shared.ts'

const fact = {
  turn: { id: 'turn' },
  text: 'The budget of Atlas is 7',
} as BatchFact

const memory = (id: string, text: string, version = 1): NearMemory => {
  return { id, text, version, tags: [], author: 'ada', acquiredAt: 0, reviewed: false }
}

const owner = memory('owner', 'The owner of Atlas is Bob')
const budget = memory('budget', 'The budget of Atlas is 6')
const added = [{ action: 'ADD', mem_id: null, text: '' }] as const
const updated = [{ action: 'UPDATE', mem_id: 'budget', text: fact.text }] as const

const judged = (
  near: NearMemory[],
  answers: typeof added | typeof updated,
  knowsWordsOnly = true,
): JudgedFacts => {
  const facts = new JudgedFacts({ knowsWordsOnly })
  facts.record(fact, { near, answers })
  return facts
}

t.test('an answer holds while nothing has changed', async t => {
  const facts = judged([owner, budget], updated)
  t.same(facts.find(fact, [owner, budget]), updated)
  t.same(facts.find(fact, [budget]), updated, 'what was told apart may go')
  t.equal(facts.find({ ...fact, text: 'Another' }, [owner]), undefined)
})

t.test('it holds beside a memory that has no more in common than one told apart', async t => {
  const city = memory('city', 'The city of Atlas is Rome')
  t.same(judged([owner], added).find(fact, [city, owner]), added)
  t.same(judged([owner, budget], updated).find(fact, [city, budget]), updated)
})

t.test('a memory that shares a further word is asked about', async t => {
  t.equal(judged([owner], added).find(fact, [owner, budget]), undefined)
  const renamed = memory('owner', 'The budget of Atlas is with Bob', 2)
  t.equal(judged([owner], added).find(fact, [renamed]), undefined, 'also one that says that now')
  t.equal(judged([], added).find(fact, [owner]), undefined, 'nothing was told apart')
})

t.test('a memory that the answer names must be as it was', async t => {
  const facts = judged([owner, budget], updated)
  t.equal(facts.find(fact, [owner, { ...budget, version: 2 }]), undefined)
  t.equal(facts.find(fact, [owner]), undefined)
})

t.test('where an embedder knows more than words, it must be no nearer either', async t => {
  const city = memory('city', 'The city of Atlas is Rome')
  const facts = judged([owner], added, false)
  t.same(facts.find(fact, [owner, city]), added)
  t.equal(facts.find(fact, [city, owner]), undefined)
  t.equal(facts.find(fact, [city]), undefined)
})

t.test('words that cannot be told apart are asked about', async t => {
  const one = memory('one', '东京的预算是六')
  const facts = judged([one], added)
  t.equal(facts.find(fact, [memory('two', '大阪的预算是六')]), undefined)
})
