/**
 * What a message of several sentences costs against one question: ranking alone, in a vault index of
 * 10,000 memories. CPU time, interleaved, so that a change of the machine's speed affects both.
 */
import { randomUUID } from 'node:crypto'
import { randomSentence } from '#scripts/bench/bench-environment.ts'
import { createVectorGenerator, seededRandom } from '#scripts/bench/generated-vectors.ts'
import { median, report } from '#scripts/bench/measure.ts'
import type { EmbeddedMemory } from '#shared/domain/memory.ts'
import { localEmbedder } from '#shared/models/local-embedder.ts'
import { createVaultIndex, type VaultIndex } from '#shared/search/index/vault-index.ts'
import { selectQuestions } from '#shared/search/query/select-questions.ts'
import { rankQuestions, type EmbeddedQuestion } from '#shared/search/ranking/rank.ts'
import { termsOf } from '#shared/search/words/index-terms.ts'

const memoryCount = 10_000
const roundCount = 60
const now = Date.UTC(2026, 10, 20, 12)
const { calibration } = localEmbedder()

/** Sentences of a message, the questions at its end. */
const messages: Record<string, { statements: number; questions: number }> = {
  'one question': { statements: 0, questions: 1 },
  'five sentences, one asks': { statements: 4, questions: 1 },
  'five sentences, all ask': { statements: 0, questions: 5 },
}

async function measure(title: string, dimension: number): Promise<void> {
  const next = createVectorGenerator('clustered', dimension, 1)
  const random = seededRandom(2)
  const index = createVaultIndex({ dimension, termsOf })
  fillIndex(index, next, random)
  const sentence = (end: string): string => randomSentence(8, random).replace(/\.$/, end)
  const sample = (statements: number, questions: number): EmbeddedQuestion[] => {
    const parts = [
      ...Array.from({ length: statements }, () => sentence('.')),
      ...Array.from({ length: questions }, () => sentence('?')),
    ]
    const selected = selectQuestions(parts.join(' '))
    const asking = selected.filter(({ kind }) => kind === 'asking')
    // Words at random can make a statement ask.
    if (statements > 0 && asking.length > questions) return sample(statements, questions)
    return selected.map(one => ({ ...one, vector: one.kind === 'name' ? null : next() }))
  }
  const times = new Map<string, number[]>(Object.keys(messages).map(name => [name, []]))
  for (let round = -10; round < roundCount; round++) {
    for (const [name, { statements, questions }] of Object.entries(messages)) {
      const asked = sample(statements, questions)
      for (const floor of [true, false]) {
        const before = process.cpuUsage()
        rankQuestions([index], asked, { now, limit: 30, floor, calibration })
        const { user, system } = process.cpuUsage(before)
        const key = `${name}${floor ? ', floor' : ''}`
        if (round >= 0) times.set(key, [...(times.get(key) ?? []), (user + system) / 1_000])
      }
    }
  }
  for (const suffix of ['', ', floor']) {
    const one = median(times.get(`one question${suffix}`)!)
    report(`${title}: one question${suffix}`, one, { unit: 'ms' })
    for (const name of Object.keys(messages).slice(1)) {
      const time = median(times.get(`${name}${suffix}`)!)
      report(`${title}: ${name}${suffix} / one question`, time / one, { bar: { most: 1.25 } })
    }
  }
}

function fillIndex(index: VaultIndex, next: () => Float32Array, random: () => number): void {
  const rows = Array.from({ length: memoryCount }, (_, i): EmbeddedMemory => ({
    id: randomUUID(),
    tier: 1,
    role: 'user',
    text: randomSentence(30, random),
    at: now - (memoryCount - i) * 3_600_000,
    tokens: 40,
    vector: next(),
  }))
  for (let row = 0; row < rows.length; row += 1_000) index.put(rows.slice(row, row + 1_000))
  index.trim()
}

await measure('10,000 x 1,536', 1_536)
