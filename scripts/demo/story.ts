import { setTimeout as delay } from 'node:timers/promises'
import type { SearchAnswer } from '#api/contract/types.ts'
import { datesFilled } from '#scripts/demo/calendar.ts'
import type { Client } from '#scripts/demo/client.ts'
import { readConversation, type Conversation, type Sitting } from '#scripts/demo/conversation.ts'
import { neverDiscussed, nextTurn, questions, type Question } from '#scripts/demo/questions.ts'
import { whyFound } from '#scripts/demo/why.ts'
import { Refusal } from '#shared/core/errors.ts'

/** A sitting that is stored: times in milliseconds, `at` in epoch milliseconds. */
export type Told = { title: string; at: number; turns: number; tokens: number; ms: number }

/** A memory that was found, `at` in epoch milliseconds. */
export type Found = Pick<
  SearchAnswer['memories'][number],
  'role' | 'content' | 'score' | 'window' | 'tier'
> & { at: number; why: string; isAnswer: boolean }

export type Asked = {
  question: string
  takes: string
  /** The first three that were found. */
  found: Found[]
  /** What is wrong with them; null when the answer is there, above what it replaces. */
  fault: string | null
  ms: number
}

export type Prepared = { question: string; context: string | null; tokens: number; ms: number }

export type Story = {
  told: Told[]
  warmup: { memories: number; ms: number }
  asked: Asked[]
  /** The question that nothing answers; it passes without a context. */
  unanswerable: Prepared
  prepared: Prepared
  stats: { memories: number; tokens: number; oldest: string | null; newest: string | null }
  medianSearchMs: number
  /** The questions that were not answered as they should be, with what is wrong. */
  failed: string[]
}

/** Hears each part of the story as soon as it has happened. */
export type Listener = {
  told?(sitting: Told): void
  warm?(warmup: Story['warmup']): void
  asked?(asked: Asked, number: number): void
  unanswerable?(prepared: Prepared): void
  prepared?(prepared: Prepared): void
}

const shown = 3
/** Enough to see the months go by, few enough to read. */
const contextMemories = 8
/** Only a service with a backlog takes longer than an ingest waits. */
const storingMs = 120_000

/**
 * Tells the whole conversation to an empty vault, sitting by sitting, then asks about it.
 *
 * @throws Refusal when the service says no or does not answer.
 */
export async function tellStory(client: Client, now: Date, listener: Listener): Promise<Story> {
  const conversation = readConversation(now)
  const told: Told[] = []
  for (const sitting of conversation.sittings) {
    told.push(await tell(client, sitting))
    listener.told?.(told.at(-1)!)
  }
  await allStored(client, told)

  const warmed = await client.call('POST /v1/memory/warmup')
  const warmup = { memories: warmed.answer.memories_loaded, ms: warmed.ms }
  listener.warm?.(warmup)

  const asked: Asked[] = []
  for (const question of questions) {
    asked.push(await ask(client, question, { conversation, now }))
    listener.asked?.(asked.at(-1)!, asked.length)
  }
  const unanswerable = await prepare(client, neverDiscussed)
  listener.unanswerable?.(unanswerable)
  const prepared = await prepare(client, nextTurn)
  listener.prepared?.(prepared)

  const { answer: stats } = await client.call('GET /v1/memory/stats')
  return {
    told,
    warmup,
    asked,
    unanswerable,
    prepared,
    stats: {
      memories: stats.memories,
      tokens: stats.total_tokens,
      oldest: stats.oldest,
      newest: stats.newest,
    },
    medianSearchMs: median(asked.map(({ ms }) => ms)),
    failed: faultsOf(asked, unanswerable, prepared),
  }
}

async function tell(client: Client, { title, at, turns }: Sitting): Promise<Told> {
  const { answer, ms } = await client.call('POST /v1/memory/ingest', {
    query: { wait: true },
    body: { messages: turns },
  })
  const tokens = answer.retrieval_tokens + answer.response_tokens
  return { title, at, turns: turns.length, tokens, ms }
}

/** An ingest that waits answers after 25 s even when its turn has not come. */
async function allStored(client: Client, told: readonly Told[]): Promise<void> {
  const turns = told.reduce((sum, { turns }) => sum + turns, 0)
  const deadline = Date.now() + storingMs
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

async function ask(
  client: Client,
  { text, takes, expects, replaces }: Question,
  { conversation, now }: { conversation: Conversation; now: Date },
): Promise<Asked> {
  const question = datesFilled(text, now)
  const expected = conversation.textOf(expects)
  const { answer, ms } = await client.call('POST /v1/memory/search', {
    body: { query: question, limit: shown },
  })
  const found = answer.memories.map(({ role, content, score, window, tier, timestamp }): Found => {
    const at = Date.parse(timestamp)
    const why = whyFound(question, { text: content, at })
    return { role, content, score, window, tier, at, why, isAnswer: content === expected }
  })
  const place = found.findIndex(({ isAnswer }) => isAnswer)
  const outdated = replaces === undefined ? undefined : conversation.textOf(replaces)
  const outdatedPlace = found.findIndex(({ content }) => content === outdated)
  const fault =
    place < 0
      ? `the answer is not among the first ${shown}`
      : outdatedPlace >= 0 && outdatedPlace < place
        ? 'what was true before stands above what is true now'
        : null
  return { question, takes, found, fault, ms }
}

async function prepare(client: Client, question: string): Promise<Prepared> {
  const { answer, ms } = await client.call('POST /v1/memory/prepare', {
    body: { messages: [{ role: 'user', content: question }], context_limit: contextMemories },
  })
  return { question, context: answer.context, tokens: answer.memory_tokens, ms }
}

function faultsOf(asked: readonly Asked[], unanswerable: Prepared, prepared: Prepared): string[] {
  const faults = asked.flatMap(({ question, fault }) => (fault ? [`${question} ${fault}`] : []))
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
