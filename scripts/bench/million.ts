/**
 * A vault of a million memories in one process: whether its index holds them, what each costs, and how a
 * search grows. Ranking alone, beside a vault of 10,000; CPU time, interleaved.
 */
import { randomUUID } from 'node:crypto'
import { randomSentence } from '#scripts/bench/bench-environment.ts'
import {
  createVectorGenerator,
  normalizeVector,
  seededRandom,
} from '#scripts/bench/generated-vectors.ts'
import { median, quantile, report } from '#scripts/bench/measure.ts'
import { measureUsedBytes } from '#scripts/bench/used-bytes.ts'
import type { Steps } from '#shared/core/event-loop.ts'
import type { EmbeddedMemory } from '#shared/domain/memory.ts'
import { localEmbedder } from '#shared/models/local-embedder.ts'
import { createVaultIndex, type VaultIndex } from '#shared/search/index/vault-index.ts'
import { rankingSteps, type EmbeddedQuestion } from '#shared/search/ranking/rank.ts'
import { termsOf } from '#shared/search/words/index-terms.ts'

const dimension = 1_536
const manyCount = 1_000_000
const fewCount = 10_000
const batchSize = 1_000
const runs = 30
const now = Date.UTC(2026, 10, 20, 12)
/** Memory that a process gives to indexes where `IMAGE_CACHE_MB` is not set. */
const defaultBudget = 512 * 1024 * 1024

const { calibration } = localEmbedder()
const random = seededRandom(2)
const nextVector = createVectors()

const few = fillIndex(fewCount)
const before = await measureUsedBytes()
const startedAt = performance.now()
const many = fillIndex(manyCount)
report('put into the index', manyCount / ((performance.now() - startedAt) / 1_000), {
  unit: 'rows/s',
})
const used = (await measureUsedBytes()) - before
report('bytes a memory', used / manyCount, { unit: 'B', bar: { most: 2_100 } })
report('reported bytes per used byte', many.bytes / used, { bar: { least: 0.9 } })
report('memory of the index, which IMAGE_CACHE_MB must allow', many.bytes / 1024 ** 2, {
  unit: 'MiB',
})
report('memories that the default of IMAGE_CACHE_MB allows', defaultBudget / (used / manyCount))

const times = { few: [] as number[], many: [] as number[] }
const steps: number[] = []
for (let run = -3; run < runs; run++) {
  const question: EmbeddedQuestion = {
    text: randomSentence(6, random),
    kind: 'whole',
    vector: nextVector(),
  }
  const ofFew = timeSteps(rank(few, question))
  const ofMany = timeSteps(rank(many, question))
  if (run < 0) continue
  times.few.push(ofFew.cpuMs)
  times.many.push(ofMany.cpuMs)
  steps.push(ofMany.longestStepMs)
}
report('a search ranked, 10,000 memories, p50', median(times.few), { unit: 'ms' })
report('a search ranked, 1,000,000 memories, p50', median(times.many), { unit: 'ms' })
report('1,000,000 / 10,000, p50', median(times.many) / median(times.few), {
  bar: { most: manyCount / fewCount },
})
report('longest step of a search, p50', median(steps), { unit: 'ms', bar: { most: 5 } })
report('longest step of a search, p90', quantile(steps, 0.9), { unit: 'ms' })

function rank(index: VaultIndex, question: EmbeddedQuestion): Steps<unknown> {
  return rankingSteps([index], [question], { now, limit: 10, floor: false, calibration })
}

/** Milliseconds of CPU of all steps, and of the longest on the clock. */
function timeSteps(work: Steps<unknown>): { cpuMs: number; longestStepMs: number } {
  const usage = process.cpuUsage()
  let longestStepMs = 0
  for (;;) {
    const stepStartedAt = performance.now()
    const { done } = work.next()
    longestStepMs = Math.max(longestStepMs, performance.now() - stepStartedAt)
    if (done) break
  }
  const { user, system } = process.cpuUsage(usage)
  return { cpuMs: (user + system) / 1_000, longestStepMs }
}

function fillIndex(count: number): VaultIndex {
  const index = createVaultIndex({ dimension, termsOf })
  for (let at = 0; at < count; at += batchSize) {
    const rows = Array.from({ length: batchSize }, (_, n) =>
      makeMemory(now - (count - at - n) * 60_000),
    )
    index.put(rows)
  }
  index.trim()
  return index
}

function makeMemory(at: number): EmbeddedMemory {
  // A flat string, as from a request.
  const text = Buffer.from(randomSentence(30, random)).toString()
  return { id: randomUUID(), tier: 1, role: 'user', text, at, tokens: 40, vector: nextVector() }
}

/** A generator of unit vectors around topics: to draw a million times 1,536 numbers would take minutes. */
function createVectors(): () => Float32Array {
  const next = createVectorGenerator('dense', dimension, 1)
  const drawn = Array.from({ length: 1_000 }, next)
  const pick = (): Float32Array => drawn[Math.floor(random() * drawn.length)]!
  return () => {
    const [topic, noise] = [drawn[Math.floor(random() * 100)]!, pick()]
    const turn = Math.floor(random() * dimension)
    return normalizeVector(topic.map((number, i) => number + 0.7 * noise[(i + turn) % dimension]!))
  }
}
