/**
 * Measures which of two statements a search tells first: `npm run bench -- superseded`. The newer of two statements
 * that contradict each other should stand first and the older be marked; neither of two that both hold
 * may be marked. Nine languages; the rules were made with the first half.
 */
import statements from '#scripts/lab/bench/superseded/statements.json' with { type: 'json' }
import { countTokens } from '#shared/core/tokens.ts'
import { createVaultIndex } from '#shared/search/index/vault-index.ts'
import { rank } from '#shared/search/ranking/rank.ts'
import { termsOf } from '#shared/search/words/index-terms.ts'
import { localEmbedder } from '#shared/models/local-embedder.ts'

const embedder = localEmbedder()
const now = Date.parse('2026-06-01T12:00:00Z')
const dayMs = 86_400_000
const showsFaults = process.argv.includes('--faults')

for (const half of ['tuned', 'heldout'] as const) {
  const { superseded, both } = statements[half]
  const found = await askAll(superseded)
  const above = found.filter(({ isNewerFirst }) => isNewerFirst).length
  const marked = found.filter(({ isMarked }) => isMarked).length
  const wrong = (await askAll(both)).filter(({ isMarked }) => isMarked).length
  console.log(
    `${half}: of ${found.length} pairs the newer above the older ${above}, the older marked ${marked}; ` +
      `of ${both.length} pairs that both hold marked ${wrong}`,
  )
}

/** Asks each question in a vault of its pair and of the older statements of all others. */
async function askAll(pairs: readonly string[][]) {
  const found: { isNewerFirst: boolean; isMarked: boolean }[] = []
  for (const [older = '', newer = '', question = ''] of pairs) {
    const others = Object.values(statements)
      .flatMap(({ superseded }) => superseded.map(([text = '']) => text))
      .filter(text => text !== older && !isAbout(text, question))
    const texts = [older, ...others.slice(0, 12), newer]
    const vectors = await embedder.embedTexts(texts)
    const index = createVaultIndex({ dimension: embedder.dimension, termsOf })
    index.put(
      texts.map((text, i) => ({
        id: `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`,
        tier: 1,
        role: 'user',
        text,
        at: now - (texts.length - i) * dayMs,
        tokens: countTokens(text),
        vector: vectors[i]!,
      })),
    )
    const hits = rank([index], {
      text: question,
      vector: await embedder.embedQuery(question),
      now,
      limit: 10,
      floor: false,
      wholeText: question,
      calibration: embedder.calibration,
    })
    const places = [older, newer].map(text => hits.findIndex(({ memory }) => memory.text === text))
    const [first = -1, second = -1] = places
    const isNewerFirst = second >= 0 && (first < 0 || second < first)
    const isMarked = hits.some(({ supersededBy }) => supersededBy !== undefined)
    found.push({ isNewerFirst, isMarked })
    if (showsFaults) console.log(isNewerFirst, isMarked, places.join(','), older, '|', newer)
  }
  return found
}

/** Whether another statement would be an answer too: they tell of homes and work. */
function isAbout(text: string, question: string): boolean {
  return (
    /live|wohn|habit|viv|work|arbeit|city/i.test(question) &&
    /live|wohn|habit|viv|work|arbeit|location|city/i.test(text)
  )
}
