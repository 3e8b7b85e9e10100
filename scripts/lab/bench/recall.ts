/**
 * Measures the recall of searches. There are two sets of
 * conversations, written for this project. Each set has a year of two friends, a year of a person with
 * an assistant, single facts in nine languages, and numbers, names and misspelt words. Questions use
 * other words than the turns that answer them. The ranking was tuned on the first set only.
 */
import { datasetSplits } from '#scripts/lab/bench/recall/conversation.ts'
import {
  measureRecall,
  measureRelevanceFloor,
  type RecallMeasures,
} from '#scripts/lab/bench/recall/measure.ts'
import { methods } from '#scripts/lab/bench/recall/methods.ts'
import {
  buildVault,
  vaultNames,
  type EvaluationVault,
} from '#scripts/lab/bench/recall/evaluation-vault.ts'
import { localEmbedder } from '#shared/models/local-embedder.ts'

const embedder = localEmbedder()
const { calibration } = embedder

for (const part of datasetSplits) {
  const vaults: EvaluationVault[] = []
  for (const name of vaultNames) vaults.push(await buildVault(part, name, embedder))
  const memories = vaults.map(vault => `${vault.name} ${vault.memoryCount}`).join(', ')
  console.log(`\n${part}: memories of ${memories}`)

  console.log(formatHeading('method'))
  for (const [name, method] of Object.entries(methods)) {
    console.log(formatRow(name, measureRecall(vaults, method, calibration).get('all')!))
  }
  console.log(formatHeading('everything, by vault'))
  for (const vault of vaults) {
    const measured = measureRecall([vault], methods['with everything']!, calibration)
    console.log(formatRow(vault.name, measured.get('all')!))
  }
  const replies = await buildVault(part, 'replies', embedder)
  const longReplies = measureRecall([replies], methods['with everything']!, calibration)
  console.log(formatRow('long replies, alone', longReplies.get('all')!))
  console.log(formatHeading('everything, by kind'))
  const kinds = measureRecall(vaults, methods['with everything']!, calibration)
  for (const [kind, measured] of kinds) if (kind !== 'all') console.log(formatRow(kind, measured))
  printFloor(vaults)
}
await printSpeed()

function formatHeading(title: string): string {
  const columns = ['questions', 'R@1', 'R@5', 'R@10', 'R@20', 'MRR', 'session@5']
  return `\n  ${title.padEnd(22)}${columns.map(column => column.padStart(10)).join('')}`
}

function formatRow(
  name: string,
  { questions, recall, reciprocalRank, sessionRecall }: RecallMeasures,
): string {
  const percent = (share: number) => (share * 100).toFixed(1)
  const cells = [
    String(questions),
    ...Object.values(recall).map(percent),
    reciprocalRank.toFixed(3),
    percent(sessionRecall),
  ]
  return `  ${name.padEnd(22)}${cells.map(cell => cell.padStart(10)).join('')}`
}

function printFloor(vaults: readonly EvaluationVault[]) {
  const floor = measureRelevanceFloor(vaults, calibration)
  console.log(
    `\n  with the floor, up to 30 rows: ${floor.unanswerableEmpty} of ${floor.unanswerable} unanswerable questions got nothing, ` +
      `${floor.answerableEmpty} of ${floor.answerable} answerable ones; ${(floor.evidenceKept * 100).toFixed(1)} % of the ` +
      `evidence kept in ${floor.rows.toFixed(1)} rows on average`,
  )
}

/** Prints the embedder's speed with 8,000 texts of 40 words from the conversations. */
async function printSpeed() {
  const { index, memoryCount } = await buildVault('tuned', 'assistant', embedder)
  const words = Array.from({ length: memoryCount }, (_, i) => index.byTier[1].memory(i).text)
    .join(' ')
    .split(' ')
  const texts = Array.from({ length: 8_000 }, (_, i) => {
    const from = (i * 37) % (words.length - 40)
    return words.slice(from, from + 40).join(' ')
  })
  const start = performance.now()
  await embedder.embedTexts(texts)
  const seconds = (performance.now() - start) / 1000
  console.log(`\nlocal embedder: ${Math.round(texts.length / seconds)} texts of 40 words a second`)
}
