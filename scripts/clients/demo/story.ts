import { setTimeout as delay } from 'node:timers/promises'
import {
  fillDates,
  monthName,
  type Conversation,
  type DemoQuestion,
  type Sitting,
} from '#scripts/clients/demo/conversation.ts'
import { sharedWords } from '#scripts/clients/demo/excerpt.ts'
import type { TimedCall } from '#scripts/clients/demo/service.ts'
import { Refusal } from '#shared/core/errors.ts'

/** Nothing in the conversation is related to it: the right answer is no memory. */
export const unanswerableQuestion = 'How do I tune the carburettor of an old motorbike?'

/** The next turn of the user, for which `POST /v1/memory/prepare` builds a context. */
export const nextUserTurn =
  "Tinta's next appointment is coming up. What should I tell the vet about her kidneys, her weight and what we have changed?"

const resultsShown = 3
/** Memories in the prepared context. */
const contextLimit = 8
/** Only a service with a backlog needs longer than an ingest with `wait=true` waits. */
const storeTimeoutMs = 120_000

export type StoredSitting = Awaited<ReturnType<typeof storeSitting>>
export type AnsweredQuestion = Awaited<ReturnType<typeof askQuestion>>
export type PreparedQuestion = Awaited<ReturnType<typeof prepareQuestion>>

/** What the demo prints as JSON; times in milliseconds. */
export type StoryResult = {
  told: StoredSitting[]
  warmup: { memories: number; ms: number }
  asked: AnsweredQuestion[]
  /** The question without an answer in the conversation; it passes when `context` is null. */
  unanswerable: PreparedQuestion
  prepared: PreparedQuestion
  stats: { memories: number; tokens: number; oldest: string | null; newest: string | null }
  medianSearchMs: number
  /** The questions that failed, each with what is wrong. */
  failed: string[]
}

export async function storeSitting(call: TimedCall, { title, at, turns }: Sitting) {
  const { answer, ms } = await call('POST /v1/memory/ingest', {
    query: { wait: true },
    body: { messages: turns },
  })
  const tokens = answer.retrieval_tokens + answer.response_tokens
  return { title, at, turns: turns.length, tokens, ms }
}

/** An ingest with `wait=true` answers after 25 s even if it is not stored yet. */
export async function waitUntilStored(
  call: TimedCall,
  sittings: readonly StoredSitting[],
): Promise<void> {
  const turns = sittings.reduce((sum, { turns }) => sum + turns, 0)
  const deadline = Date.now() + storeTimeoutMs
  for (;;) {
    const { answer } = await call('GET /v1/memory/stats')
    if (answer.memories >= turns) return
    if (Date.now() > deadline) {
      throw new Refusal(
        'unavailable',
        `Only ${answer.memories} of ${turns} memories were stored within two minutes`,
        'Is a worker running, and not busy with others?',
      )
    }
    await delay(250)
  }
}

/** @returns `fault` null when the answer is among the first three, and above an outdated one. */
export async function askQuestion(
  call: TimedCall,
  { text, takes, answerTurnId, outdatedTurnId }: DemoQuestion,
  { conversation, now }: { conversation: Conversation; now: Date },
) {
  const question = fillDates(text, now)
  const { answer, ms } = await call('POST /v1/memory/search', {
    body: { query: question, limit: resultsShown },
  })
  const expected = conversation.turnText(answerTurnId)
  const found = answer.memories.map(({ role, content, score, window, tier, timestamp }) => {
    const at = Date.parse(timestamp)
    const why = explainMatch(question, content, at)
    return { role, content, score, window, tier, at, why, isAnswer: content === expected }
  })
  const outdated = outdatedTurnId === undefined ? undefined : conversation.turnText(outdatedTurnId)
  const first = found.find(({ isAnswer, content }) => isAnswer || content === outdated)
  const fault = !found.some(({ isAnswer }) => isAnswer)
    ? `the answer is not among the first ${resultsShown}`
    : first!.isAnswer
      ? null
      : 'an outdated answer ranks above the current one'
  return { question, takes, found, fault, ms }
}

/** Describes what a memory has in common with the question. */
function explainMatch(question: string, text: string, at: number): string {
  const shared = sharedWords(question, text).map(word => `“${word}”`)
  const reasons = [
    question.includes(monthName(at)) && `said in ${monthName(at)}`,
    shared.length > 0 && `shares ${shared.join(', ')}`,
  ]
  return reasons.filter(Boolean).join(', ') || 'no word shared'
}

export async function prepareQuestion(call: TimedCall, question: string) {
  const { answer, ms } = await call('POST /v1/memory/prepare', {
    body: { messages: [{ role: 'user', content: question }], context_limit: contextLimit },
  })
  return { question, context: answer.context, tokens: answer.memory_tokens, ms }
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other)
  const middle = sorted.length / 2
  return (sorted[Math.floor(middle)]! + sorted[Math.ceil(middle) - 1]!) / 2
}
