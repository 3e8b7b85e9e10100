import { countTokens } from '#shared/core/tokens.ts'
import { renderContextBlock } from '#shared/domain/context-block.ts'
import type { Embedder } from '#shared/domain/embedder.ts'
import { localEmbedder } from '#shared/models/local-embedder.ts'
import { createVaultIndex, type VaultIndex } from '#shared/search/index/vault-index.ts'
import { asksMemory } from '#shared/search/query/sentence-kinds.ts'
import { selectQuestions } from '#shared/search/query/select-questions.ts'
import { answerConfidence } from '#shared/search/ranking/signals.ts'
import { rankQuestions } from '#shared/search/ranking/rank.ts'
import type { SearchHit } from '#shared/search/ranking/search-hits.ts'
import { termsOf } from '#shared/search/words/index-terms.ts'
import { chooseLines, leaveOutWeakRest } from '#shared/vault/read/prepare/choose-lines.ts'
import {
  askedAt,
  buildHarmVaults,
  type Half,
  type HarmCase,
} from '#scripts/lab/bench/harm/harm-set.ts'
import { answerAsStubAgent } from '#scripts/lab/bench/harm/stub-agent.ts'
import { wrappings, type Wrapping } from '#scripts/lab/bench/harm/wrappings.ts'

const contextTokensMax = 1_500
const memoriesMax = 30

export type Outcome = HarmCase & {
  language: string
  wrapping: string
  hits: readonly SearchHit[]
  confidence: number
  /** Tokens of the block; 0 without one. */
  tokens: number
  /** Whether the memory that answers is in the block. */
  isAnswered: boolean
  /** Whether `X-Memory-Tell-Absence` would tell that nothing is remembered. */
  isAbsenceTold: boolean
  /** What the stub agent answers with the block before the message. */
  agentAnswer: string
}

/** Asks every case of a half in every wrapping, or in some, as `prepare` does by default. */
export async function measureHalf(
  half: Half,
  embedder: Embedder = localEmbedder(),
  wrapped: readonly Wrapping[] = wrappings,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  for (const { language, told, cases } of buildHarmVaults(half)) {
    const index = await buildIndex(told, embedder)
    for (const { name, wrap } of wrapped) {
      for (const one of cases) {
        outcomes.push({
          ...one,
          language,
          wrapping: name,
          ...(await ask(index, wrap(one.text), one, embedder)),
        })
      }
    }
  }
  return outcomes
}

async function buildIndex(
  told: ReturnType<typeof buildHarmVaults>[number]['told'],
  embedder: Embedder,
): Promise<VaultIndex> {
  const vectors = await embedder.embedTexts(told.map(({ text }) => text))
  const index = createVaultIndex({ dimension: embedder.dimension, termsOf })
  index.put(
    told.map(({ role, text, at }, i) => ({
      id: `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`,
      tier: 1,
      role,
      text,
      at,
      tokens: countTokens(text),
      vector: vectors[i]!,
    })),
  )
  return index
}

async function ask(index: VaultIndex, message: string, { answer }: HarmCase, embedder: Embedder) {
  const questions = await Promise.all(
    selectQuestions(message).map(async question => ({
      ...question,
      vector: question.kind === 'name' ? null : await embedder.embedQuery(question.text),
    })),
  )
  const ranked = rankQuestions([index], questions, {
    now: askedAt,
    limit: memoriesMax,
    floor: true,
    calibration: embedder.calibration,
  })
  const hits = leaveOutWeakRest(ranked, questions)
  const found = hits.map(hit => ({ ...hit, source: 'core' as const }))
  const lines = chooseLines(found, message, contextTokensMax)
  const block = renderContextBlock(lines, askedAt)
  return {
    hits,
    confidence: answerConfidence(hits),
    tokens: block === null ? 0 : countTokens(block),
    isAbsenceTold:
      hits.length === 0 &&
      questions.some(({ kind, text }) => !['name', 'statement'].includes(kind) && asksMemory(text)),
    isAnswered: lines.some(({ text }) => text === answer),
    agentAnswer: answerAsStubAgent(`${block ?? ''}\n\n${message}`),
  }
}
