import t from 'tap'
import { randomUUID } from 'node:crypto'
import { createVaultIndex, type VaultIndex } from '#shared/search/index/vault-index.ts'
import { rank } from '#shared/search/ranking/rank.ts'
import { termsOf } from '#shared/search/words/index-terms.ts'
import { localEmbedder } from '#shared/models/local-embedder.ts'
import type { Calibration } from '#shared/domain/embedder.ts'

const embedder = localEmbedder()
const now = Date.UTC(2026, 10, 20, 12)
const HOUR_MS = 3_600_000

async function buildIndex(texts: readonly string[]): Promise<VaultIndex> {
  const index = createVaultIndex({ dimension: embedder.dimension, termsOf })
  const vectors = await embedder.embedTexts(texts)
  index.put(
    texts.map((text, i) => ({
      id: randomUUID(),
      tier: 1,
      role: 'user',
      text,
      at: now - (i + 1) * 48 * HOUR_MS,
      tokens: 12,
      vector: vectors[i]!,
    })),
  )
  return index
}

async function ask(index: VaultIndex, text: string): Promise<string[]> {
  const vector = await embedder.embedQuery(text)
  const { calibration } = embedder
  const hits = rank([index], { text, vector, now, limit: 30, floor: true, calibration })
  return hits.map(({ memory }) => memory.text)
}

const told = [
  'My violin is being repaired by Mr Okafor in Bristol.',
  'I keep the spare key of the allotment under the blue pot.',
  'Compare gas and induction stoves in terms of price.',
  'Suggest three names for a sailing boat.',
  'We are moving to a flat with a balcony in May.',
]

t.test('a task is no answer to a question about the person who gave it', async t => {
  const index = await buildIndex(told)
  t.same(await ask(index, 'Which stove do I cook on?'), [])
  t.same(await ask(index, 'What is my boat called?'), [])
})

t.test('a name that no memory has is not answered by other words of the question', async t => {
  const index = await buildIndex(told)
  t.match((await ask(index, 'Who repairs my violin?'))[0], /Okafor/)
  t.same(await ask(index, 'Does Fenella have a violin?'), [])
})

t.test('a question that shares no word with memories in another language gets nothing', async t => {
  const index = await buildIndex([
    'Meine Geige wird gerade repariert.',
    'Der Ersatzschlüssel vom Schrebergarten liegt unter dem Topf.',
    'Whichever stove is used, oil the pan first.',
  ])
  t.same(await ask(index, 'Where is the spare key of my garden?'), [])
})

t.test('a similarity that is not made of words is evidence by itself', async t => {
  const text = 'Where is the spare key of my garden?'
  const vector = await embedder.embedQuery(text)
  const index = createVaultIndex({ dimension: embedder.dimension, termsOf })
  index.put([
    {
      id: randomUUID(),
      tier: 1,
      role: 'user',
      text: 'Der Ersatzschlüssel liegt unter dem Topf.',
      at: now - HOUR_MS,
      tokens: 12,
      // A model that knows both languages puts them at the same place.
      vector,
    },
  ])
  const hitsOf = (calibration: Calibration) =>
    rank([index], { text, vector, now, limit: 30, floor: true, calibration })
  t.equal(hitsOf({ unrelated: 0.3, same: 0.8, floor: 0.4, certain: 0.35 }).length, 1)
  t.equal(
    hitsOf({ unrelated: 0.3, same: 0.8, floor: 0.4, certain: 1 }).length,
    0,
    'a model of one language',
  )
})
