import type { Embedder } from '#shared/domain/embedder.ts'
import type { EmbeddedMemory } from '#shared/domain/memory.ts'
import { createImage, type Image } from '#shared/search/index/vault-index.ts'
import { termsOf } from '#shared/search/words/words.ts'
import { tokensOf } from '#shared/core/tokens.ts'
import { readConversation, type Part, type Question } from '#scripts/bench/recall/conversation.ts'
import { fillerSessions } from '#scripts/bench/recall/filler.ts'

/** A conversation as it lies in a vault, with what is needed to tell whether an answer was found. */
export type Vault = {
  name: string
  image: Image
  questions: (Question & { vector: Float32Array })[]
  /** By memory id. */
  tagOf: ReadonlyMap<string, string>
  sessionOf: ReadonlyMap<string, number>
  memories: number
  /** When the questions are asked: after everything was said. */
  now: number
}

/** How each conversation is stored: people write their names before what they say, chats do not. */
const kinds = {
  friends: { filler: 'chat', sessions: 90, named: true },
  assistant: { filler: 'topics', sessions: 400, named: false },
  languages: { filler: 'topics', sessions: 0, named: false },
  exact: { filler: 'topics', sessions: 0, named: false },
} as const

export type VaultName = keyof typeof kinds

export const vaultNames = Object.keys(kinds) as VaultName[]

const DAY_MS = 86_400_000
const turnMs = 30_000

/** Builds the vault of one conversation, its evidence scattered among sessions of small talk. */
export async function buildVault(part: Part, name: VaultName, embedder: Embedder): Promise<Vault> {
  const { sessions, questions } = readConversation(part, name)
  const { filler, sessions: fillers, named } = kinds[name]
  const speakers = [...new Set(sessions.flatMap(({ turns }) => turns.map(turn => turn.speaker)))]
  const end = sessions.at(-1)!.at + DAY_MS
  const all = [...sessions, ...fillerSessions(filler, fillers, speakers, sessions[0]!.at, end)]

  const tagOf = new Map<string, string>()
  const sessionOf = new Map<string, number>()
  const memories: Omit<EmbeddedMemory, 'vector'>[] = []
  for (const [session, { at, turns }] of all.entries()) {
    for (const [i, turn] of turns.entries()) {
      const id = idOf(memories.length)
      const text = named ? `${turn.speaker}: ${turn.text}` : turn.text
      if (turn.tag) tagOf.set(id, turn.tag)
      sessionOf.set(id, session)
      memories.push({
        id,
        text,
        tier: 1,
        role: turn.role,
        at: at + i * turnMs,
        tokens: tokensOf(text),
      })
    }
  }
  const vectors = await embedder.embedTexts(memories.map(({ text }) => text))
  const image = createImage({ dimension: embedder.dimension, termsOf })
  image.put(memories.map((memory, i) => ({ ...memory, vector: vectors[i]! })))
  const asked = await Promise.all(
    questions.map(async question => ({
      ...question,
      vector: await embedder.embedQuery(question.text),
    })),
  )
  return { name, image, questions: asked, tagOf, sessionOf, memories: memories.length, now: end }
}

function idOf(number: number): string {
  return `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`
}
