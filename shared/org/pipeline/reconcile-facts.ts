import { Refusal } from '#shared/core/errors.ts'
import { memoryIdOf, idForPurpose } from '#shared/core/ids.ts'
import type { CompletionBackend } from '#shared/org/pipeline/cached-completion.ts'
import { currentTags, decideFacts } from '#shared/org/pipeline/decide-facts.ts'
import { reviewThreshold } from '#shared/org/review-threshold.ts'
import type { ChangeOrigin } from '#shared/org/shared-change.ts'
import {
  addSharedMemories,
  updateSharedMemory,
  type SharedMemoryChange,
  type NewSharedMemory,
} from '#shared/org/write-shared-memories.ts'
import { findOrgPolicy, type OrgPolicy } from '#shared/org/org-policy.postgres.ts'
import {
  findTurn,
  finishTurn,
  lockTurn,
  discardDecision,
  savePassResults,
  type Decision,
  type TaggedFact,
  type TurnRow,
} from '#shared/org/org-turns.postgres.ts'
import { isBlockedByRedaction } from '#shared/privacy/apply-redaction.ts'
import type { OrgTurnJob } from '#shared/domain/job-payloads.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { QueryVectorCache } from '#shared/search/query/query-vector-cache.ts'
import type { VaultIndexes } from '#shared/search/index/vault-indexes.ts'
import type { NearestSearch } from '#shared/vault/read/nearest.ts'
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
 * The third pass: compares facts with the shared memories, stores its decisions and carries them out, with
 * the member as the actor of every change. Safe to run any number of times: stored decisions are carried
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
  const { postgres } = backend
  const turn = await findTurn(postgres.query, job.turn)
  const policy = await findOrgPolicy(postgres.query, job.org)
  if (!turn?.pass2 || !policy || turn.finished) return
  const facts = turn.pass2
  const decisions =
    turn.pass3 ?? (await loadOrMakeDecisions(backend, { turn, policy, facts }, signal))
  if (!decisions) return
  const decided = { turn, policy, facts, decisions }
  try {
    // A change by another worker of this turn looks like an edit until it is finalized: check again.
    await applyDecisions(backend, decided, signal).catch((error: unknown) => {
      if (!isStaleDecision(error)) throw error
      return applyDecisions(backend, decided, signal)
    })
  } catch (error) {
    if (isStaleDecision(error)) await postgres.transaction(tx => discardDecision(tx, turn.id))
    throw error
  }
  await postgres.transaction(tx => finishTurn(tx, turn.id))
}

type ReconcileInput = { turn: TurnRow; policy: OrgPolicy; facts: readonly TaggedFact[] }

/** @returns undefined once the turn is deleted. */
async function loadOrMakeDecisions(
  backend: ReconcileBackend,
  { turn, policy, facts }: ReconcileInput,
  signal: AbortSignal,
): Promise<Decision[] | undefined> {
  const outcomes = await decideFacts(backend, { turn, policy, facts }, signal)
  const seed = deriveIdSeed(turn, outcomes)
  let added = 0
  const pass3 = outcomes.map((decision): Decision => {
    if (decision.action !== 'ADD') return decision
    return { ...decision, mem_id: memoryIdOf(seed, added++) }
  })
  return backend.postgres.transaction(async tx => {
    const locked = await lockTurn(tx, turn.id)
    if (!locked) return undefined
    if (locked.pass3) return locked.pass3
    await savePassResults(tx, turn.id, { pass3 })
    return pass3
  })
}

/** What the ids of added memories are made of: others for another decision about the same turn. */
function deriveIdSeed({ id }: Pick<TurnRow, 'id'>, decisions: readonly Decision[]): string {
  const added = decisions.filter(({ action }) => action === 'ADD').map(({ text }) => text)
  return idForPurpose(id, `shared ${JSON.stringify(added)}`)
}

type DecidedTurn = ReconcileInput & { decisions: readonly Decision[] }

async function applyDecisions(
  backend: ReconcileBackend,
  decided: DecidedTurn,
  signal: AbortSignal,
): Promise<void> {
  const { turn, policy } = decided
  const orgVault = { org: policy.org, vault: policy.vault, epoch: policy.epoch }
  for (const change of toUpdates(decided)) {
    signal.throwIfAborted()
    await updateSharedMemory(backend, orgVault, change).catch(skipIfBlocked)
  }
  const items = toAdditions(decided)
  if (items.length === 0) return
  signal.throwIfAborted()
  const by = { operation: deriveIdSeed(turn, decided.decisions), actor: turn.author }
  const added = await addSharedMemories(backend, orgVault, { ...by, items }).catch(skipIfBlocked)
  const failed = added?.failed.find(({ error }) => !isBlockedByRedaction(error))
  if (failed) throw failed.error
}

/** A fact that the policy blocks by now is not shared. */
function skipIfBlocked(error: unknown): undefined {
  if (!isBlockedByRedaction(error)) throw error
}

const toUpdates = ({
  turn,
  facts,
  decisions,
}: DecidedTurn): (ChangeOrigin & SharedMemoryChange)[] =>
  decisions.flatMap(({ action, text, mem_id: id, version }, index) => {
    if (action !== 'UPDATE' || id === null || version === undefined) return []
    const { confidence } = facts[index]!
    return [
      {
        operation: idForPurpose(turn.id, `update ${id} at ${version}`),
        actor: turn.author,
        id,
        text,
        ifVersion: version,
        // A doubt about the new words is a doubt about the memory.
        ...(confidence < reviewThreshold && { confidence }),
      },
    ]
  })

/** Surely below the threshold, and not what is least sure. */
const contestedConfidence = 0.5

/** In the order that their ids were made in. */
const toAdditions = ({ turn, policy, facts, decisions }: DecidedTurn): NewSharedMemory[] =>
  decisions.flatMap(({ action, text, replaces }, index) => {
    if (action !== 'ADD') return []
    const fact = facts[index]!
    return [
      {
        text,
        tags: currentTags(policy, fact),
        // However sure its tags are: whether it replaces the other one is for a person to say.
        confidence:
          replaces === undefined ? fact.confidence : Math.min(fact.confidence, contestedConfidence),
        author: turn.author,
        reviewed: false,
        acquiredAt: turn.saidAt.getTime(),
      },
    ]
  })

/** The memory was changed or removed between the decision and its execution. */
const isStaleDecision = (error: unknown): boolean =>
  error instanceof Refusal && (error.reason === 'conflict' || error.reason === 'missing')
