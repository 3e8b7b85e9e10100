/**
 * Measures what memory does to questions and to messages that ask nothing of it:
 * `npm run bench -- harm`. Nine languages; each message alone and in six wrappings. Floors, word tables
 * and confidence were fitted to the first half; the second tells other facts under other names. The
 * accuracy is that of an agent which one irrelevant line makes wrong. At the end the second half with the vectors of
 * other embedding models.
 */
import {
  blockShare,
  calibrationError,
  measureAccuracy,
  medianTokens,
  share,
  unhelpedKinds,
} from '#scripts/lab/bench/harm/figures.ts'
import { measureHalf } from '#scripts/lab/bench/harm/measure.ts'
import { shiftEmbedder, shifts } from '#scripts/lab/bench/harm/shifted-embedder.ts'
import { localEmbedder } from '#shared/models/local-embedder.ts'
import { wrappings } from '#scripts/lab/bench/harm/wrappings.ts'

const columns = ['answerable', ...unhelpedKinds, 'cross-language'] as const

for (const half of ['tuned', 'heldout'] as const) {
  const outcomes = await measureHalf(half)
  const bare = outcomes.filter(({ wrapping }) => wrapping === 'bare')
  console.log(
    `\n${half}: ${bare.length} messages, % of them with a block; answerable: with the answer`,
  )
  console.log(`  ${'wrapping'.padEnd(12)}${columns.map(name => name.padStart(15)).join('')}`)
  for (const { name } of wrappings) {
    const cells = columns.map(kind => percent(blockShare(outcomes, kind, name)).padStart(15))
    console.log(`  ${name.padEnd(12)}${cells.join('')}`)
  }
  for (const { name } of wrappings) {
    const cells = columns.map(kind => {
      const asked = outcomes.filter(one => one.kind === kind && one.wrapping === name)
      return percent(share(asked, one => one.isAbsenceTold)).padStart(15)
    })
    console.log(`  ${name.padEnd(12)}${cells.join('')}  told that nothing is remembered`)
  }
  console.log(
    `  calibration error ${calibrationError(outcomes).toFixed(3)}, ` +
      `median block ${medianTokens(outcomes)} tokens`,
  )
  const accuracy = measureAccuracy(outcomes)
  console.log(
    `  stub agent: right ${percent(accuracy.without)} % without memory, ` +
      `${percent(accuracy.with)} % with memory; ` +
      `no worse from ${percent(accuracy.breakEven)} % of messages on that need memory`,
  )
}

console.log('\nheldout, bare, with other embedding models: unrelated cosine, dimensions')
console.log(`  ${''.padEnd(12)}${columns.map(name => name.padStart(15)).join('')}   median block`)
for (const shift of shifts) {
  const embedder = await shiftEmbedder(localEmbedder(), shift)
  const outcomes = await measureHalf('heldout', embedder, wrappings.slice(0, 1))
  const cells = columns.map(kind => percent(blockShare(outcomes, kind, 'bare')).padStart(15))
  const name = `${shift.unrelated}, ${shift.dimension}`.padEnd(12)
  console.log(`  ${name}${cells.join('')}   ${medianTokens(outcomes)} tokens`)
}

function percent(part: number): string {
  return (part * 100).toFixed(1)
}
