import { setTimeout as delay } from 'node:timers/promises'
import type { SearchAnswer } from '#api/contract/generated/types.ts'
import { fillDates } from '#scripts/clients/demo/relative-dates.ts'
import type { TimedClient } from '#scripts/clients/demo/client.ts'
import {
  readConversation,
  type Conversation,
  type Sitting,
} from '#scripts/clients/demo/conversation.ts'
import {
  unanswerableQuestion,
  nextUserTurn,
  questions,
  type DemoQuestion,
} from '#scripts/clients/demo/questions.ts'
import { explainMatch } from '#scripts/clients/demo/explain-match.ts'
import { Refusal } from '#shared/core/errors.ts'

/** A stored sitting; `at` in epoch milliseconds, `ms` until it was stored. */
export type IngestedSitting = {
  title: string
  at: number
  turns: number
  tokens: number
  ms: number
}

/** A memory in the results of a search; `at` in epoch milliseconds. */
export type FoundMemory = Pick<
  SearchAnswer['memories'][number],
  'role' | 'content' | 'score' | 'window' | 'tier'
> & { at: number; why: string; isAnswer: boolean }

export type AnsweredQuestion = {
  question: string
  takes: string
  /** The first three results. */
  found: FoundMemory[]
  /** What is wrong with the results; null when the answer is there and above an outdated one. */
  fault: string | null
  ms: number
}

export type PreparedQuestion = {
  question: string
  context: string | null
  tokens: number
  ms: number
}

export type StoryResult = {
  told: IngestedSitting[]
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

/** Called after each step of the story. */
export type StoryListener = {
  onSittingStored?(sitting: IngestedSitting): void
  onWarmedUp?(warmup: StoryResult['warmup']): void
  onQuestionAnswered?(answered: AnsweredQuestion, number: number): void
  onUnanswerable?(prepared: PreparedQuestion): void
  onPrepared?(prepared: PreparedQuestion): void
}

const resultsShown = 3
/** Memories in the prepared context. */
const contextLimit = 8
/** Only a service with a backlog needs longer than an ingest with `wait=true` waits. */
const storeTimeoutMs = 120_000

/**
 * Stores the conversation in an empty vault, sitting by sitting, then searches it with the questions.
 *
 * @throws Refusal when the service refuses a request or does not answer.
 */
export async function runStory(
  client: TimedClient,
  now: Date,
  listener: StoryListener,
): Promise<StoryResult> {
  const conversation = readConversation(now)
  const sittings: IngestedSitting[] = []
  for (const sitting of conversation.sittings) {
    sittings.push(await ingestSitting(client, sitting))
    listener.onSittingStored?.(sittings.at(-1)!)
  }
  await waitUntilStored(client, sittings)

  const warmupCall = await client.call('POST /v1/memory/warmup')
  const warmup = { memories: warmupCall.answer.memories_loaded, ms: warmupCall.ms }
  listener.onWarmedUp?.(warmup)

  const answers: AnsweredQuestion[] = []
  for (const question of questions) {
    answers.push(await askQuestion(client, question, { conversation, now }))
    listener.onQuestionAnswered?.(answers.at(-1)!, answers.length)
  }
  const unanswerable = await prepareQuestion(client, unanswerableQuestion)
  listener.onUnanswerable?.(unanswerable)
  const prepared = await prepareQuestion(client, nextUserTurn)
  listener.onPrepared?.(prepared)

  const { answer: stats } = await client.call('GET /v1/memory/stats')
  return {
    told: sittings,
    warmup,
    asked: answers,
    unanswerable,
    prepared,
    stats: {
      memories: stats.memories,
      tokens: stats.total_tokens,
      oldest: stats.oldest,
      newest: stats.newest,
    },
    medianSearchMs: median(answers.map(({ ms }) => ms)),
    failed: listFailures(answers, unanswerable, prepared),
  }
}

async function ingestSitting(
  client: TimedClient,
  { title, at, turns }: Sitting,
): Promise<IngestedSitting> {
  const { answer, ms } = await client.call('POST /v1/memory/ingest', {
    query: { wait: true },
    body: { messages: turns },
  })
  const tokens = answer.retrieval_tokens + answer.response_tokens
  return { title, at, turns: turns.length, tokens, ms }
}

/** An ingest with `wait=true` answers after 25 s even if it is not stored yet. */
async function waitUntilStored(
  client: TimedClient,
  sittings: readonly IngestedSitting[],
): Promise<void> {
  const turns = sittings.reduce((sum, { turns }) => sum + turns, 0)
  const deadline = Date.now() + storeTimeoutMs
  for (;;) {
    const { answer } = await client.call('GET /v1/memory/stats')
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

async function askQuestion(
  client: TimedClient,
  { text, takes, answerTurnId, outdatedTurnId }: DemoQuestion,
  { conversation, now }: { conversation: Conversation; now: Date },
): Promise<AnsweredQuestion> {
  const question = fillDates(text, now)
  const expected = conversation.turnText(answerTurnId)
  const { answer, ms } = await client.call('POST /v1/memory/search', {
    body: { query: question, limit: resultsShown },
  })
  const ranking = answer.memories.map(
    ({ role, content, score, window, tier, timestamp }): FoundMemory => {
      const at = Date.parse(timestamp)
      const why = explainMatch(question, { text: content, at })
      return { role, content, score, window, tier, at, why, isAnswer: content === expected }
    },
  )
  const answerRank = ranking.findIndex(({ isAnswer }) => isAnswer)
  const outdated = outdatedTurnId === undefined ? undefined : conversation.turnText(outdatedTurnId)
  const outdatedRank = ranking.findIndex(({ content }) => content === outdated)
  const fault =
    answerRank < 0
      ? `the answer is not among the first ${resultsShown}`
      : outdatedRank >= 0 && outdatedRank < answerRank
        ? 'an outdated answer ranks above the current one'
        : null
  return { question, takes, found: ranking, fault, ms }
}

async function prepareQuestion(client: TimedClient, question: string): Promise<PreparedQuestion> {
  const { answer, ms } = await client.call('POST /v1/memory/prepare', {
    body: { messages: [{ role: 'user', content: question }], context_limit: contextLimit },
  })
  return { question, context: answer.context, tokens: answer.memory_tokens, ms }
}

function listFailures(
  answers: readonly AnsweredQuestion[],
  unanswerable: PreparedQuestion,
  prepared: PreparedQuestion,
): string[] {
  const faults = answers.flatMap(({ question, fault }) => (fault ? [`${question} ${fault}`] : []))
  if (unanswerable.context !== null) {
    faults.push(`${unanswerable.question} something unrelated was recalled`)
  }
  if (prepared.context === null) faults.push(`${prepared.question} nothing was recalled`)
  return faults
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other)
  const middle = sorted.length / 2
  return (sorted[Math.floor(middle)]! + sorted[Math.ceil(middle) - 1]!) / 2
}
