import { memoryIdOf } from '#shared/core/ids.ts'
import {
  applyDecisions,
  deriveIdSeed,
  isStaleDecision,
  recordStatements,
} from '#shared/org/pipeline/apply-decisions.ts'
import { factsOfTurns } from '#shared/org/pipeline/batch-facts.ts'
import { AnswerMissing, type CompletionBackend } from '#shared/org/pipeline/cached-completion.ts'
import { decideFacts } from '#shared/org/pipeline/decide-facts.ts'
import { JudgedFacts } from '#shared/org/pipeline/judged-facts.ts'
import { inOrgLane } from '#shared/org/pipeline/turn-batches.postgres.ts'
import { findOrgPolicy, type OrgPolicy } from '#shared/org/base/org-policy.postgres.ts'
import {
  findTurnBatch,
  finishTurn,
  lockTurn,
  discardDecisions,
  savePassResults,
  type Decision,
  type TurnRow,
} from '#shared/org/base/org-turns.postgres.ts'
import type { OrgTurnJob } from '#shared/domain/job-payloads.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { QueryVectorCache } from '#shared/search/query/query-vector-cache.ts'
import type { VaultIndexes } from '#shared/search/index/vault-indexes.ts'
import type { NearestSearch } from '#shared/vault/read/search/nearest.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { Log } from '#shared/core/log.ts'

type ReconcileBackend = CompletionBackend & {
  mongo: Mongo
  queue: Queue
  embedders: Embedders
  queryVectors: QueryVectorCache
  vaultIndexes: VaultIndexes
  nearest: NearestSearch
  now: () => number
  log: Log
}

/**
 * The third pass: compares the facts of a turn and of its batch with the shared memories, stores its
 * decisions and carries them out turn by turn, with the member as the actor of every change. Safe to run any number of times: stored decisions are carried
 * out as they were made, each change once. When an edit of a memory makes them obsolete they are
 * withdrawn and made again.
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

type LaneInput = TurnsInput & { storedOnly: boolean; judged: JudgedFacts; usesJudged: boolean }

/** Turns of one member, in the order they were said. */
type TurnsInput = { policy: OrgPolicy; turns: readonly TurnRow[] }

/** Times that a question is asked outside of the lane before it is asked inside. */
const roundsOutside = 4

/**
 * Settles the first turn, and those after it that do not go on from it. Several turns of a team ask their
 * models side by side: in the lane the questions are made again, and those about memories that have not
 * changed since have their answer already. Where one has none, the lane is left to ask it. From the second
 * time on an answer counts that `JudgedFacts` still holds for true.
 */
async function settleTurns(
  backend: ReconcileBackend,
  input: TurnsInput,
  signal: AbortSignal,
): Promise<void> {
  const knowsWordsOnly = backend.embedders.defaultModel === 'local'
  const judged = new JudgedFacts({ knowsWordsOnly })
  for (let round = 1; ; round++) {
    const outside = { ...toQuestion(input), judged, usesJudged: round > 2 }
    if (!input.turns[0]!.pass3) await decideFacts(backend, outside, signal)
    const storedOnly = round < roundsOutside
    const usesJudged = round > 1
    try {
      return await inOrgLane(backend.postgres, input.policy.org, signal, () =>
        decideAndApply(backend, { ...input, storedOnly, judged, usesJudged }, signal),
      )
    } catch (error) {
      if (!(error instanceof AnswerMissing)) throw error
    }
  }
}

const toQuestion = ({ policy, turns }: TurnsInput) => ({
  policy,
  leader: turns[0]!,
  facts: factsOfTurns(turns),
})

async function decideAndApply(
  backend: ReconcileBackend,
  input: LaneInput,
  signal: AbortSignal,
): Promise<void> {
  const { postgres } = backend
  const { policy, turns } = input
  for (const { turn, decisions } of await loadOrMakeDecisions(backend, input, signal)) {
    // As they are called by now: a tag of before the question may have given its label to another one.
    const current = await findOrgPolicy(postgres.query, policy.org)
    if (!current) return
    const policyNow = { ...policy, tags: current.tags }
    const decided = { turn, policy: policyNow, facts: turn.pass2!, decisions }
    try {
      // A change by another worker of this turn looks like an edit until it is finalized: check again.
      await applyDecisions(backend, decided, signal).catch((error: unknown) => {
        if (!isStaleDecision(error)) throw error
        return applyDecisions(backend, decided, signal)
      })
    } catch (error) {
      if (isStaleDecision(error)) {
        const ids = turns.map(({ id }) => id)
        await postgres.transaction(tx => discardDecisions(tx, ids))
      }
      throw error
    }
    await postgres.transaction(async tx => {
      await recordStatements(tx, decided)
      await finishTurn(tx, turn.id)
    })
  }
}

type DecidedRow = { turn: TurnRow; decisions: Decision[] }

/** Of the first turns: those decided before, or those that are decided now. Deleted turns are left out. */
async function loadOrMakeDecisions(
  backend: ReconcileBackend,
  { storedOnly, judged, usesJudged, ...input }: LaneInput,
  signal: AbortSignal,
): Promise<DecidedRow[]> {
  const { turns } = input
  const undecided = turns.findIndex(({ pass3 }) => !pass3)
  if (undecided !== 0) {
    const known = undecided < 0 ? turns : turns.slice(0, undecided)
    return known.map(turn => ({ turn, decisions: turn.pass3! }))
  }
  const question = { ...toQuestion(input), storedOnly, judged, usesJudged }
  const outcomes = await decideFacts(backend, question, signal)
  let first = 0
  const made = turns.flatMap((turn): DecidedRow[] => {
    const own = outcomes.slice(first, first + turn.pass2!.length)
    first += turn.pass2!.length
    return own.length < turn.pass2!.length ? [] : [{ turn, decisions: withIds(turn, own) }]
  })
  return backend.postgres.transaction(async tx => {
    const saved: DecidedRow[] = []
    for (const { turn, decisions } of made) {
      const locked = await lockTurn(tx, turn.id)
      if (!locked) continue
      if (!locked.pass3) await savePassResults(tx, turn.id, { pass3: decisions })
      saved.push({ turn, decisions: locked.pass3 ?? decisions })
    }
    return saved
  })
}

/** The decisions of a turn with the ids of what is added. */
function withIds(turn: TurnRow, outcomes: readonly Decision[]): Decision[] {
  const seed = deriveIdSeed(turn, outcomes)
  let added = 0
  return outcomes.map(decision => {
    const { action, copy } = decision
    if (action === 'ADD') return { ...decision, mem_id: memoryIdOf(seed, added++) }
    return copy ? { ...decision, copy: { ...copy, mem_id: memoryIdOf(seed, added++) } } : decision
  })
}
