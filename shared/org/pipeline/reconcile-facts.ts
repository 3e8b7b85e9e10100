import { findAuthorScope } from '#shared/access/key-row.postgres.ts'
import type { Log } from '#shared/core/log.ts'
import { memoryIdOf } from '#shared/core/ids.ts'
import type { OrgTurnJob } from '#shared/domain/job-payloads.ts'
import { findOrgPolicy, type OrgPolicy } from '#shared/org/base/org-policy.postgres.ts'
import {
  discardDecisions,
  findTurnBatch,
  finishTurn,
  lockTurn,
  savePassResults,
  type Decision,
  type TurnRow,
} from '#shared/org/base/org-turns.postgres.ts'
import {
  applyDecisions,
  deriveIdSeed,
  isStaleDecision,
  recordStatements,
} from '#shared/org/pipeline/apply-decisions.ts'
import { factsOfTurns } from '#shared/org/pipeline/batch-facts.ts'
import {
  AnswerMissing,
  cachedCompletions,
  type CompletionBackend,
} from '#shared/org/pipeline/cached-completion.ts'
import { JudgedFacts } from '#shared/org/pipeline/compare-facts.ts'
import { decideFacts } from '#shared/org/pipeline/decide-facts.ts'
import type { NearestBackend } from '#shared/org/pipeline/nearest-shared.ts'
import { inOrgLane } from '#shared/org/pipeline/org-lane.postgres.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'

type ReconcileBackend = CompletionBackend & NearestBackend & { queue: Queue; log: Log }

/**
 * Runs the third pass: compares the facts of a turn and of its batch with the shared memories, stores its
 * decisions and carries them out turn by turn, with the member as the actor of every change. Safe to run any
 * number of times: stored decisions are carried out once. Decisions about a memory that was changed meanwhile
 * are withdrawn and made again.
 *
 * @throws Refusal as `extractFacts`; `conflict` when others keep changing the memory.
 */
export async function reconcileFacts(
  backend: ReconcileBackend,
  job: OrgTurnJob,
  signal: AbortSignal,
): Promise<void> {
  const { query } = backend.postgres
  const policy = await findOrgPolicy(query, job.org)
  if (!policy) return
  for (;;) {
    const turns = (await findTurnBatch(query, job.turn)).filter(({ pass2 }) => pass2)
    if (turns.length === 0) return
    await settleTurns(backend, { policy, turns }, signal)
  }
}

/** Turns of one member, in the order they were said. */
type TurnsInput = { policy: OrgPolicy; turns: readonly TurnRow[] }

/** How the model is asked. */
type QuestionMode = { storedOnly?: boolean; earlierAnswers: JudgedFacts; reusesAnswers: boolean }

/** The rounds from which answers of earlier ones are reused, and from which the model is asked inside the lane. */
const [laneReusesFrom, outsideReusesFrom, laneAsksFrom] = [2, 3, 4]

/**
 * Settles the first turn, and those after it that do not go on from it. Turns of a team ask their models side by
 * side; inside the lane the questions are made again, and where no stored answer fits, the lane is left to ask:
 * - round 1: outside all is asked, the lane takes only answers to the very same questions;
 * - round 2: outside all is asked again, the lane reuses answers that `JudgedFacts` finds to hold;
 * - round 3: both reuse them; the first two ask about memories that others have just written;
 * - round 4 and later: the lane asks for what is missing itself, since others would change the memory each time.
 */
async function settleTurns(
  backend: ReconcileBackend,
  input: TurnsInput,
  signal: AbortSignal,
): Promise<void> {
  const knowsWordsOnly = backend.embedders.defaultModel === 'local'
  const earlierAnswers = new JudgedFacts({ knowsWordsOnly })
  for (let round = 1; ; round++) {
    if (!input.turns[0]!.pass3) {
      // Only for the answers that it stores: the lane finds them.
      const mode = { earlierAnswers, reusesAnswers: round >= outsideReusesFrom }
      await decide(backend, input, mode, signal)
    }
    const reusesAnswers = round >= laneReusesFrom
    const mode = { storedOnly: round < laneAsksFrom, earlierAnswers, reusesAnswers }
    try {
      const lane = { org: input.policy.org, turn: input.turns[0]!.id }
      return await inOrgLane(backend.postgres, lane, signal, inLane =>
        decideAndApply(backend, input, mode, inLane),
      )
    } catch (error) {
      if (!(error instanceof AnswerMissing)) throw error
    }
  }
}

const decide = (
  backend: ReconcileBackend,
  { policy, turns }: TurnsInput,
  mode: QuestionMode,
  signal: AbortSignal,
): Promise<Decision[]> => {
  const leader = turns[0]!
  const findAuthor = () => findAuthorScope(backend.postgres.query, leader.id)
  const question = { policy, leader, facts: factsOfTurns(turns), findAuthor, ...mode }
  return decideFacts({ ...backend, ask: cachedCompletions(backend) }, question, signal)
}

async function decideAndApply(
  backend: ReconcileBackend,
  input: TurnsInput,
  mode: QuestionMode,
  signal: AbortSignal,
): Promise<void> {
  const { postgres } = backend
  const { policy, turns } = input
  for (const { turn, decisions } of await loadOrMakeDecisions(backend, input, mode, signal)) {
    // The tags of now: one of before the question may have given its label to another.
    const currentPolicy = await findOrgPolicy(postgres.query, policy.org)
    if (!currentPolicy) return
    const policyNow = { ...policy, tags: currentPolicy.tags }
    const decidedTurn = { turn, policy: policyNow, facts: turn.pass2!, decisions }
    try {
      // A `conflict` may be another worker's unfinished write of this same decision: try again.
      await applyDecisions(backend, decidedTurn, signal).catch((error: unknown) => {
        if (!isStaleDecision(error)) throw error
        return applyDecisions(backend, decidedTurn, signal)
      })
    } catch (error) {
      if (isStaleDecision(error)) {
        const ids = turns.map(({ id }) => id)
        await postgres.transaction(tx => discardDecisions(tx, ids))
      }
      throw error
    }
    await postgres.transaction(async tx => {
      await recordStatements(tx, decidedTurn)
      await finishTurn(tx, turn.id)
    })
  }
}

type TurnDecisions = { turn: TurnRow; decisions: Decision[] }

/** The decisions of the first turns, stored ones or new ones. Turns that are deleted meanwhile are left out. */
async function loadOrMakeDecisions(
  backend: ReconcileBackend,
  input: TurnsInput,
  mode: QuestionMode,
  signal: AbortSignal,
): Promise<TurnDecisions[]> {
  const { turns } = input
  const firstUndecided = turns.findIndex(({ pass3 }) => !pass3)
  if (firstUndecided !== 0) {
    const decidedTurns = firstUndecided < 0 ? turns : turns.slice(0, firstUndecided)
    return decidedTurns.map(turn => ({ turn, decisions: turn.pass3! }))
  }
  const allDecisions = await decide(backend, input, mode, signal)
  let start = 0
  const newDecisions = turns.flatMap((turn): TurnDecisions[] => {
    const count = turn.pass2!.length
    const part = allDecisions.slice(start, start + count)
    start += count
    return part.length < count ? [] : [{ turn, decisions: withIds(turn, part) }]
  })
  return backend.postgres.transaction(async tx => {
    const savedDecisions: TurnDecisions[] = []
    for (const { turn, decisions } of newDecisions) {
      const locked = await lockTurn(tx, turn.id)
      if (!locked) continue
      if (!locked.pass3) await savePassResults(tx, turn.id, { pass3: decisions })
      savedDecisions.push({ turn, decisions: locked.pass3 ?? decisions })
    }
    return savedDecisions
  })
}

/** Gives the memories that decisions add their ids. */
function withIds(turn: TurnRow, decisions: readonly Decision[]): Decision[] {
  const seed = deriveIdSeed(turn, decisions)
  let added = 0
  return decisions.map(decision => {
    const { action, copy } = decision
    if (action === 'ADD') return { ...decision, mem_id: memoryIdOf(seed, added++) }
    return copy ? { ...decision, copy: { ...copy, mem_id: memoryIdOf(seed, added++) } } : decision
  })
}
