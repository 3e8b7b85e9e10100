import type { Backend } from '#shared/backend.ts'
import type { Caller } from '#shared/key/caller.ts'
import { contextBlock } from '#shared/memory/context-block.ts'
import { turnsOf, type Message } from '#shared/memory/content.ts'
import type { Tier } from '#shared/memory/memory.ts'
import { recall, type Recalled } from '#shared/memory/recall.ts'
import { tokensOf } from '#shared/tokens.ts'

type Density = 'low' | 'default' | 'high' | 'xhigh'

/** How many memories a density may bring. */
const memoriesOfDensity: Record<Density, number> = {
  low: 12,
  default: 30,
  high: 60,
  xhigh: 120,
}

export type Preparation = {
  messages: readonly Message[]
  session: string | null
  embeddings: string | undefined
  density: Density | undefined
  /** Overrides the density: 1 to 500 memories. */
  limit: number | undefined
  tiers: readonly Tier[] | undefined
  importance: number | undefined
}

export type Prepared = {
  /** Null when nothing relevant is remembered. */
  context: string | null
  memories: number
  /** Tokens of the recalled memories. */
  recalledTokens: number
  /** Tokens of the whole block, as it goes into a prompt. */
  contextTokens: number
}

/**
 * Recalls what core and session vault know about the last turns of a conversation, and what a member
 * may see of the shared memory, and writes the block for the prompt.
 *
 * @throws what `recall` throws.
 */
export async function prepareContext(
  backend: Parameters<typeof recall>[0] & Pick<Backend, 'retrievals'>,
  caller: Caller,
  preparation: Preparation,
): Promise<Prepared> {
  const limit = preparation.limit ?? memoriesOfDensity[preparation.density ?? 'default']
  const found = await recalled(backend, caller, preparation, limit)
  if (caller.member) backend.retrievals.record(caller.member)
  const memories = found.map(({ memory }) => memory)
  const context = contextBlock(memories, backend.now())
  return {
    context,
    memories: memories.length,
    recalledTokens: memories.reduce((sum, { tokens }) => sum + tokens, 0),
    contextTokens: context === null ? 0 : tokensOf(context),
  }
}

/** What the last user turn asks counts in full; what was said just before it adds what it calls to mind. */
async function recalled(
  backend: Parameters<typeof recall>[0],
  caller: Caller,
  preparation: Preparation,
  limit: number,
): Promise<Recalled[]> {
  const { question, background } = retrievalTexts(preparation.messages)
  const asked = (text: string, places: number): Promise<Recalled[]> =>
    text === '' || places === 0
      ? Promise.resolve([])
      : recall(backend, caller, {
          text,
          limit: places,
          sessions: preparation.session === null ? [null] : [null, preparation.session],
          embeddings: preparation.embeddings,
          tiers: preparation.tiers,
          importance: preparation.importance,
          floor: true,
        })
  const direct = await asked(question, limit)
  const room = Math.min(limit - direct.length, Math.ceil(limit / 3))
  const around = await asked(background, room)
  const known = new Set(direct.map(({ memory }) => memory.text))
  return [...direct, ...around.filter(({ memory }) => !known.has(memory.text))]
}

/** The newest turns say what the conversation is about. */
const backgroundTurns = 4
const questionCharacters = 8_000
const backgroundCharacters = 2_000

/**
 * The texts to look for, out of the most recent turns that are not the system's: the last user turn,
 * and the few turns before it.
 */
function retrievalTexts(messages: readonly Message[]): {
  question: string
  background: string
} {
  const turns = turnsOf(messages.map(({ role, content }) => ({ role, content })))
  const userTurn = turns.findLastIndex(({ role }) => role === 'user')
  const last = userTurn >= 0 ? userTurn : turns.length - 1
  const question = (turns[last]?.text ?? '').slice(-questionCharacters).trim()
  const background = turns
    .slice(Math.max(0, last - backgroundTurns), Math.max(0, last))
    .map(({ text }) => text.slice(0, backgroundCharacters / backgroundTurns))
    .join('\n')
    .trim()
  return { question, background }
}
