import { readFileSync } from 'node:fs'
import t from 'tap'
import type { Memory } from '#shared/domain/memory.ts'
import { embed, localEmbedder } from '#shared/models/local-embedder.ts'
import { createVaultIndex } from '#shared/search/index/vault-index.ts'
import { selectQuestions } from '#shared/search/query/select-questions.ts'
import { rankQuestions } from '#shared/search/ranking/rank.ts'
import { termsOf } from '#shared/search/words/index-terms.ts'

/**
 * "Tell me about X" in ten languages: what the vault holds of X is told, and nothing where it holds nothing. The
 * data has, for each language, forms of asking with NAME, facts with NAME, and sentences about other things.
 */

type Language = { forms: string[]; facts: string[]; others: string[]; tasks: string[] }
const languages = JSON.parse(
  readFileSync(new URL('asked-names.json', import.meta.url), 'utf8'),
) as Record<string, Language>

const now = Date.UTC(2026, 10, 20, 15)
const { dimension, calibration } = localEmbedder()
/** A vault has the first of each, and not the second. */
const names = [
  ['Project Aurora', 'Project Halcyon'],
  ['Dana Whitfield', 'Piet Verhoeven'],
  ['Kestrel', 'Ocelot'],
] as const

function vaultOf({ facts, others }: Language) {
  const index = createVaultIndex({ dimension, termsOf })
  const texts = [
    ...names.flatMap(([held]) => facts.map(fact => fact.replaceAll('NAME', held))),
    ...others,
  ]
  index.put(
    texts.map((text, i): Memory & { vector: Float32Array } => ({
      id: `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`,
      tier: 1,
      role: 'user',
      at: now - (i + 1) * 86_400_000,
      tokens: Math.ceil(text.length / 4),
      text,
      vector: embed(text),
    })),
  )
  return index
}

function told(index: ReturnType<typeof vaultOf>, message: string): string[] {
  const questions = selectQuestions(message).map(one => ({
    ...one,
    vector: one.kind === 'name' ? null : embed(one.text),
  }))
  const options = { now, limit: 30, floor: true, calibration }
  return rankQuestions([index], questions, options).map(({ memory }) => memory.text)
}

const vaults = Object.entries(languages).map(
  ([language, data]) => [language, data, vaultOf(data)] as const,
)

t.test('of a name that the vault holds it tells, of another it does not', async t => {
  let [asked, held, strange] = [0, 0, 0]
  for (const [language, { forms }, index] of vaults) {
    for (const form of forms) {
      for (const [known, unknown] of names) {
        asked++
        const message = form.replaceAll('NAME', known)
        const isHeld = told(index, message).some(text => text.includes(known))
        if (isHeld) held++
        else t.comment(`${language}: nothing of ${message}`)
        const other = form.replaceAll('NAME', unknown)
        const found = told(index, other)
        if (found.length === 0) continue
        strange++
        t.comment(`${language}: ${other} is told ${found[0]}`)
      }
    }
  }
  t.comment(`${held} of ${asked} are told of what is held, ${strange} of what is not`)
  t.ok(held >= 0.95 * asked, `${held} of ${asked}`)
  t.ok(strange <= 0.05 * asked, `${strange} of ${asked}`)
})

t.test('a task about nothing that is held is told nothing', async t => {
  for (const [language, { tasks }, index] of vaults) {
    for (const task of tasks) t.same(told(index, task), [], `${language}: ${task}`)
  }
})
