import t from 'tap'
import {
  calibrationError,
  measureAccuracy,
  medianTokens,
  share,
  unhelpedKinds,
} from '#scripts/lab/bench/harm/figures.ts'
import { measureHalf, type Outcome } from '#scripts/lab/bench/harm/measure.ts'
import { shiftEmbedder, shifts } from '#scripts/lab/bench/harm/shifted-embedder.ts'
import { localEmbedder } from '#shared/models/local-embedder.ts'
import { wrappings } from '#scripts/lab/bench/harm/wrappings.ts'
import type { HarmKind } from '#scripts/lab/bench/harm/harm-set.ts'

/** The bench's half that nothing was fitted to: what is told, and what is not. */

const outcomes = await measureHalf('heldout')

const sentAs = (wrapping: string): Outcome[] => outcomes.filter(one => one.wrapping === wrapping)
const ofKind = (kind: HarmKind, wrapping: string): Outcome[] =>
  sentAs(wrapping).filter(one => one.kind === kind)

t.test('the set is large enough, in nine languages', async t => {
  t.ok(sentAs('bare').length * 2 >= 600, 'messages of both halves')
  t.equal(new Set(outcomes.map(({ language }) => language)).size, 9)
})

for (const { name } of wrappings) {
  t.test(`${name}: what is remembered is told, what asks nothing of it gets nothing`, async t => {
    const answered = share(ofKind('answerable', name), one => one.isAnswered)
    t.ok(answered >= (name === 'bare' ? 0.95 : 0.92), `${answered} answered`)
    for (const kind of unhelpedKinds) {
      const disturbed = share(ofKind(kind, name), ({ tokens }) => tokens > 0)
      t.ok(disturbed <= 0.05, `${kind}: ${disturbed} got a block`)
    }
  })

  t.test(`${name}: an agent that one irrelevant line makes wrong is right more often`, async t => {
    const { with: withMemory, without, breakEven } = measureAccuracy(sentAs(name))
    t.ok(withMemory > without, `${withMemory} with memory, ${without} without`)
    t.ok(breakEven <= 0.1, `no worse from a share of ${breakEven} on that needs memory`)
  })
}

t.test('the confidence of a block is the share of its kind that answers', async t => {
  const error = calibrationError(outcomes)
  t.ok(error <= 0.05, `${error}`)
})

t.test('a block costs little', async t => {
  const tokens = medianTokens(outcomes)
  t.ok(tokens > 0 && tokens < 400, `${tokens} tokens`)
})

for (const shift of shifts) {
  const name = `unrelated texts at ${shift.unrelated}, ${shift.dimension} dimensions`
  t.test(`another embedding model tells the same: ${name}`, async t => {
    const embedder = await shiftEmbedder(localEmbedder(), shift)
    const shifted = await measureHalf('heldout', embedder, wrappings.slice(0, 1))
    const kindOf = (kind: HarmKind) => shifted.filter(one => one.kind === kind)
    const answered = share(kindOf('answerable'), one => one.isAnswered)
    t.ok(answered >= 0.95, `${answered} answered`)
    for (const kind of unhelpedKinds) {
      const disturbed = share(kindOf(kind), ({ tokens }) => tokens > 0)
      t.ok(disturbed <= 0.05, `${kind}: ${disturbed} got a block`)
    }
    const tokens = medianTokens(shifted) / medianTokens(sentAs('bare'))
    t.ok(tokens <= 1.5, `a block of ${tokens} times the tokens`)
  })
}
