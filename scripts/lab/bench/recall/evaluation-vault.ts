import type { Embedder } from '#shared/domain/embedder.ts'
import type { EmbeddedMemory } from '#shared/domain/memory.ts'
import { createVaultIndex, type VaultIndex } from '#shared/search/index/vault-index.ts'
import { termsOf } from '#shared/search/words/index-terms.ts'
import { countTokens } from '#shared/core/tokens.ts'
import {
  readConversation,
  type DatasetSplit,
  type EvaluationQuestion,
} from '#scripts/lab/bench/recall/conversation.ts'
import { createLongReplies } from '#scripts/lab/bench/recall/long-replies.ts'
import { createFillerSessions } from '#scripts/lab/bench/recall/filler.ts'

/** An indexed conversation with its questions and their expected results. */
export type EvaluationVault = {
  name: string
  index: VaultIndex
  questions: (EvaluationQuestion & { vector: Float32Array })[]
  /** By memory id. */
  tagByMemory: ReadonlyMap<string, string>
  sessionByMemory: ReadonlyMap<string, number>
  memoryCount: number
  /** Time of the questions: after all turns. */
  now: number
}

/** How each conversation is stored: `named` puts the speaker before the text, as chat logs do. */
const storageKinds = {
  friends: { filler: 'chat', sessions: 90, named: true },
  assistant: { filler: 'topics', sessions: 400, named: false },
  languages: { filler: 'topics', sessions: 0, named: false },
  exact: { filler: 'topics', sessions: 0, named: false },
  replies: { filler: 'topics', sessions: 40, named: false },
} as const

export type VaultName = keyof typeof storageKinds

/** Those whose means are reported as one; `replies` stands for itself. */
export const vaultNames = [
  'friends',
  'assistant',
  'languages',
  'exact',
] as const satisfies VaultName[]

const DAY_MS = 86_400_000
const turnIntervalMs = 30_000

/** Builds the vault of one conversation, its sessions scattered among filler sessions. */
export async function buildVault(
  split: DatasetSplit,
  name: VaultName,
  embedder: Embedder,
): Promise<EvaluationVault> {
  const { sessions, questions } =
    name === 'replies' ? createLongReplies(split) : readConversation(split, name)
  const { filler, sessions: fillerCount, named } = storageKinds[name]
  const speakers = [...new Set(sessions.flatMap(({ turns }) => turns.map(turn => turn.speaker)))]
  const end = sessions.at(-1)!.at + DAY_MS
  const all = [
    ...sessions,
    ...createFillerSessions(filler, fillerCount, speakers, sessions[0]!.at, end),
  ]

  const tagOf = new Map<string, string>()
  const sessionOf = new Map<string, number>()
  const memories: Omit<EmbeddedMemory, 'vector'>[] = []
  for (const [session, { at, turns }] of all.entries()) {
    for (const [i, turn] of turns.entries()) {
      const id = memoryId(memories.length)
      const text = named ? `${turn.speaker}: ${turn.text}` : turn.text
      if (turn.tag) tagOf.set(id, turn.tag)
      sessionOf.set(id, session)
      memories.push({
        id,
        text,
        tier: 1,
        role: turn.role,
        at: at + i * turnIntervalMs,
        tokens: countTokens(text),
      })
    }
  }
  const vectors = await embedder.embedTexts(memories.map(({ text }) => text))
  const index = createVaultIndex({ dimension: embedder.dimension, termsOf })
  index.put(memories.map((memory, i) => ({ ...memory, vector: vectors[i]! })))
  const embeddedQuestions = await Promise.all(
    questions.map(async question => ({
      ...question,
      vector: await embedder.embedQuery(question.text),
    })),
  )
  return {
    name,
    index,
    questions: embeddedQuestions,
    tagByMemory: tagOf,
    sessionByMemory: sessionOf,
    memoryCount: memories.length,
    now: end,
  }
}

function memoryId(number: number): string {
  return `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`
}
