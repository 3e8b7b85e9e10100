import type { Log } from '#shared/core/log.ts'
import {
  cachedCompletions,
  type CompletionBackend,
} from '#shared/org/pipeline/cached-completion.ts'
import { findFacts, type EarlierWords } from '#shared/org/pipeline/find-facts.ts'
import {
  withholdByAntiRules,
  type WithheldPart,
  truncateText,
} from '#shared/org/base/rule-matching.ts'
import { groupIntoTurns } from '#shared/vault/ingest/turn-extraction.ts'
import { sharedByIds } from '#shared/org/memories/shared-memories.mongo.ts'
import { findReturnedBefore } from '#shared/org/trail/shared-retrievals.postgres.ts'
import { findOrgPolicy, type OrgPolicy } from '#shared/org/base/org-policy.postgres.ts'
import {
  findTurn,
  finishTurn,
  lockTurn,
  isStillValid,
  savePassResults,
  type Fact,
  type TurnRow,
  findEarlierTurns,
} from '#shared/org/base/org-turns.postgres.ts'
import {
  dropLedJobs,
  gatherTurns,
  isLedByAnother,
  leadTurns,
  waitsForEarlier,
} from '#shared/org/pipeline/turn-batches.postgres.ts'
import type { OrgExtractJob } from '#shared/domain/job-payloads.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import type { Transaction, Postgres } from '#shared/storage/postgres/connect.ts'
import type { Snooze } from '#shared/storage/queue/job-outcome.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import { memoryIdOf } from '#shared/core/ids.ts'
import { memberWordsByIds } from '#shared/org/pipeline/member-words.mongo.ts'

type ExtractBackend = CompletionBackend & { mongo: Mongo; queue: Queue; log: Log }

/** Exchanges of one call: a model reads more less well. */
const turnsMax = 10
const charactersMax = 60_000

/** How often a turn that goes along with another checks whether that one is done. */
const ledSeconds = 15
/** How often a turn checks whether an earlier one of its session is done. */
const turnSeconds = 1

/**
 * Runs the first pass: extracts what is worth sharing from a turn, and from the waiting turns of the same session,
 * in one call. Stores the results in one transaction with the job of the second pass. A turn that was cancelled or
 * cleared yields nothing. Safe to run any number of times.
 *
 * @returns a snooze when the turn goes along with another
 * @throws Refusal `upstream` when the model does not answer or its answer is unusable, `invalid` when there is no
 *   key to ask it with, `unavailable` when the database is out of reach.
 */
export async function extractFacts(
  backend: ExtractBackend,
  job: OrgExtractJob,
  signal: AbortSignal,
): Promise<Snooze | undefined> {
  const { query } = backend.postgres
  const turn = await findTurn(query, job.turn)
  const policy = await findOrgPolicy(query, job.org)
  if (!turn || !policy || turn.pass1) return undefined
  if (await isLedByAnother(query, turn)) return { snoozeSeconds: ledSeconds }
  if (await waitsForEarlier(query, job)) return { snoozeSeconds: turnSeconds }
  const led = await gatherTurns(query, job, {
    turnsMax,
    charactersMax: charactersMax - JSON.stringify(job.messages).length,
  })
  const jobs = [job, ...led].toSorted((a, b) => a.saidAt - b.saidAt || (a.turn < b.turn ? -1 : 1))
  const batch = { leader: turn, policy, jobs }
  for (;;) {
    const extracted = await extractValid(backend, batch, signal)
    if (!extracted) continue
    await backend.postgres.transaction(tx => saveFacts(backend, tx, batch, extracted))
    return undefined
  }
}

type Batch = { leader: TurnRow; policy: OrgPolicy; jobs: readonly OrgExtractJob[] }

type Extracted = { job: OrgExtractJob; facts: Fact[]; withheld: WithheldPart | null }

/** How often a call checks whether its turns were cleared: clearing waits for its end. */
const recheckMs = 1_000

/** @returns undefined when a turn was cancelled or cleared meanwhile: the others are asked about again. */
async function extractValid(
  backend: ExtractBackend,
  { jobs, ...batch }: Batch,
  signal: AbortSignal,
): Promise<Extracted[] | undefined> {
  const valid = await stillValid(backend, jobs)
  if (valid.length === 0) return []
  const invalidated = new AbortController()
  const timer = setInterval(() => {
    stillValid(backend, valid)
      .then(now => void (now.length === valid.length || invalidated.abort()))
      .catch((error: unknown) =>
        backend.log.warn({ err: error, turn: batch.leader.id }, 'org-extract.blind'),
      )
  }, recheckMs)
  try {
    return await extract(
      backend,
      { ...batch, jobs: valid },
      AbortSignal.any([signal, invalidated.signal]),
    )
  } catch (error) {
    if (!invalidated.signal.aborted || signal.aborted) throw error
    return undefined
  } finally {
    clearInterval(timer)
  }
}

async function stillValid(
  { postgres }: ExtractBackend,
  jobs: readonly OrgExtractJob[],
): Promise<OrgExtractJob[]> {
  const valid = await Promise.all(jobs.map(job => isStillValid(postgres, job)))
  return jobs.filter((_, index) => valid[index])
}

async function extract(
  backend: ExtractBackend,
  { leader, policy, jobs }: Batch,
  signal: AbortSignal,
): Promise<Extracted[]> {
  // What an anti-rule matches is not even shown to the model.
  const shown = jobs.map(job => withholdByAntiRules(policy, groupIntoTurns(job.messages)))
  const rows = await Promise.all(jobs.map(({ turn }) => findTurn(backend.postgres.query, turn)))
  const exchanges = jobs.map(({ turn, saidAt }, index) => ({
    turn: { id: turn, inheritedTags: rows[index]?.inheritedTags ?? [] },
    saidAt,
    turns: shown[index]!.turns,
  }))
  const turns = jobs.map(({ turn, operation }) => operation ?? turn)
  const returnedTags = await tagsOfReturned(backend, policy, turns)
  const earlierWords = await findEarlierWords(backend, policy, jobs)
  const inheritedTags = [...earlierWords.inheritedTags, ...returnedTags]
  const earlier = { ...earlierWords, inheritedTags }
  const ask = cachedCompletions(backend)
  const facts = await findFacts(ask, { leader, policy, exchanges, earlier }, signal)
  return jobs.map((job, index) => {
    return { job, facts: facts[index]!, withheld: shown[index]!.withheld }
  })
}

/** How long before an exchange a member's program may have been given memories for it. */
const returnedSeconds = 600

async function tagsOfReturned(
  { postgres, mongo }: ExtractBackend,
  policy: OrgPolicy,
  turns: readonly string[],
): Promise<string[]> {
  const ids = await findReturnedBefore(postgres.query, turns, returnedSeconds)
  const memories = await sharedByIds(mongo, policy, ids)
  return memories.flatMap(({ tags }) => tags)
}

/** Stores the facts of each turn and sends the job of the second pass. */
async function saveFacts(
  { queue }: Pick<ExtractBackend, 'queue'>,
  tx: Transaction,
  { leader, jobs }: Batch,
  extracted: readonly Extracted[],
): Promise<void> {
  const results = new Map(extracted.map(one => [one.job.turn, one]))
  const jobsGoingOn: OrgExtractJob[] = []
  for (const job of jobs) {
    const turn = await lockTurn(tx, job.turn)
    if (!turn || turn.pass1) continue
    const { facts = [], withheld = null } = results.get(job.turn) ?? {}
    if (facts.length > 0 && (await isStillValid(tx, job))) {
      await savePassResults(tx, job.turn, { pass1: facts, withheld })
      jobsGoingOn.push(job)
    } else {
      await savePassResults(tx, job.turn, { pass1: [], pass2: [], pass3: [], withheld })
      await finishTurn(tx, job.turn)
    }
  }
  const ledTurns = jobs.flatMap(({ turn }) => (turn === leader.id ? [] : [turn]))
  if (ledTurns.length > 0) await dropLedJobs(tx, ledTurns)
  const [firstJob] = jobsGoingOn
  if (!firstJob) return
  const turnsGoingOn = jobsGoingOn.map(({ turn }) => turn)
  if (jobs.length > 1) await leadTurns(tx, turnsGoingOn)
  const { turn: id, operation, org } = firstJob
  const data = { turn: id, org, ...(operation !== undefined && { operation }) }
  await queue.send(tx, 'org-tag', [{ id, data, priority: 0, group: org }])
}

/** Exchanges, and of each the memories that may hold its first words. */
const exchangesMax = 3
const memoriesMax = 4
const messagesMax = 6
const messageMax = 600
/** Older messages belong to another conversation. */
const withinMs = 30 * 60_000

/**
 * Finds the last exchanges before these in the same session that were shared with the organization and are still
 * remembered. Words that an anti-rule matches are left out.
 *
 * @throws Refusal `unavailable` when a store is out of reach.
 */
async function findEarlierWords(
  { postgres, mongo }: { postgres: Postgres; mongo: Mongo },
  policy: OrgPolicy,
  jobs: readonly OrgExtractJob[],
): Promise<EarlierWords> {
  const [first] = jobs
  const turns = await findEarlierTurns(postgres.query, {
    turn: first!.turn,
    besides: jobs.flatMap(({ turn, operation }) => [turn, operation ?? turn]),
    from: first!.saidAt - withinMs,
    upTo: first!.saidAt,
    limit: exchangesMax,
  })
  if (turns.length === 0) return { messages: [], inheritedTags: [] }
  const ids = turns.flatMap(({ id }) =>
    Array.from({ length: memoriesMax }, (_, index) => memoryIdOf(id, index)),
  )
  const words = await memberWordsByIds(mongo, first!, ids)
  const shown = withholdByAntiRules(policy, groupIntoTurns(words)).turns.flat()
  return {
    messages: shown
      .slice(-messagesMax)
      .map(message => ({ ...message, text: truncateText(message.text, messageMax) })),
    // The tags of all exchanges: an answer may go on from an earlier one.
    inheritedTags: [...new Set(turns.flatMap(({ inheritedTags }) => inheritedTags))],
  }
}
