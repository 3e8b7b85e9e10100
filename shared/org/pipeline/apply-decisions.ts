import { Refusal } from '#shared/core/errors.ts'
import { idForPurpose } from '#shared/core/ids.ts'
import type { OrgPolicy } from '#shared/org/base/org-policy.postgres.ts'
import type { Decision, TaggedFact, TurnRow } from '#shared/org/base/org-turns.postgres.ts'
import { findExecRule } from '#shared/org/base/rule-matching.ts'
import {
  noSuchSharedMemory,
  type ChangeOrigin,
  type SharedMemoryBackend,
} from '#shared/org/memories/shared-change.ts'
import { reviewThreshold } from '#shared/org/memories/shared-memories.mongo.ts'
import { insertStatements } from '#shared/org/memories/shared-statements.postgres.ts'
import { confirmShared } from '#shared/org/memories/shared-writes.mongo.ts'
import {
  addSharedMemories,
  updateSharedMemory,
  type NewSharedMemory,
  type SharedMemoryChange,
} from '#shared/org/memories/write-shared-memories.ts'
import { currentTags } from '#shared/org/pipeline/batch-facts.ts'
import type { TurnAuthor } from '#shared/org/pipeline/cached-completion.ts'
import { isBlockedByRedaction, redactOrSkipText } from '#shared/privacy/apply-redaction.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'

/** The seed of the ids of added memories: another one for other decisions about the same turn. */
export function deriveIdSeed({ id }: Pick<TurnRow, 'id'>, decisions: readonly Decision[]): string {
  const added = decisions.flatMap(decision => additionOf(decision)?.text ?? [])
  return idForPurpose(id, `shared ${JSON.stringify(added)}`)
}

/** The addition that a decision is, or the copy that its update adds. */
const additionOf = ({
  action,
  copy,
  ...decision
}: Decision): Pick<Decision, 'text' | 'pending' | 'unseen'> | undefined => {
  if (action === 'ADD') return decision
  return copy && { text: copy.text, pending: true }
}

/** The decisions about the facts of a turn, in the order of the facts. */
type DecidedTurn = {
  turn: TurnRow
  policy: OrgPolicy
  facts: readonly TaggedFact[]
  decisions: readonly Decision[]
}

/**
 * Carries out the decisions about a turn: updates, confirmations, additions. Safe to run any number of times.
 *
 * @throws Refusal `conflict` or `missing` when a memory was changed since: see `isStaleDecision`.
 */
export async function applyDecisions(
  backend: SharedMemoryBackend,
  decided: DecidedTurn,
  signal: AbortSignal,
): Promise<void> {
  const { turn, policy } = decided
  const orgVault = { org: policy.org, vault: policy.vault, epoch: policy.epoch }
  for (const change of toUpdates(decided)) {
    signal.throwIfAborted()
    await updateSharedMemory(backend, orgVault, change).catch(skipIfBlocked)
  }
  for (const id of toConfirmations(decided)) {
    const saidAt = turn.saidAt.getTime()
    if (!(await confirmShared(backend.mongo, orgVault, id, saidAt))) throw noSuchSharedMemory()
  }
  const items = toAdditions(decided)
  if (items.length === 0) return
  signal.throwIfAborted()
  const by = { operation: deriveIdSeed(turn, decided.decisions), actor: turn.author }
  const added = await addSharedMemories(backend, orgVault, { ...by, items }).catch(skipIfBlocked)
  const failed = added?.failed.find(({ error }) => !isBlockedByRedaction(error))
  if (failed) throw failed.error
}

/** Facts that the redaction policy blocks by now are not shared. */
function skipIfBlocked(error: unknown): undefined {
  if (!isBlockedByRedaction(error)) throw error
}

const toUpdates = ({
  turn,
  facts,
  decisions,
}: DecidedTurn): (ChangeOrigin & SharedMemoryChange)[] =>
  decisions.flatMap(({ action, text, mem_id, version, also = [] }, index) => {
    if (action !== 'UPDATE' || mem_id === null || version === undefined) return []
    const { confidence } = facts[index]!
    return [{ text, mem_id, version }, ...also].map(({ text: words, mem_id: id, version: on }) => ({
      operation: idForPurpose(turn.id, `update ${id} at ${on}`),
      actor: turn.author,
      id,
      text: words,
      statement: { author: turn.author, saidAt: turn.saidAt.getTime() },
      ifVersion: on,
      // A doubt about the new words is a doubt about the memory.
      ...(confidence < reviewThreshold && { confidence }),
    }))
  })

/** The memories that the member said again. */
const toConfirmations = ({ decisions }: DecidedTurn): string[] =>
  decisions.flatMap(({ action, mem_id: id, outdated, hidden }) =>
    action === 'NONE' && id !== null && !outdated && !hidden ? [id] : [],
  )

/** The highest confidence of what a person has to decide about: below the review threshold, not the least. */
const contestedConfidence = 0.5

/** The memories to add, in the order in which their ids were made. */
const toAdditions = ({ turn, policy, facts, decisions }: DecidedTurn): NewSharedMemory[] =>
  decisions.flatMap(
    (decision, index) => toAddedMemory({ turn, policy, fact: facts[index]! }, decision) ?? [],
  )

/** The memory that a decision about a fact adds; undefined where it adds none. */
export function toAddedMemory(
  { turn, policy, fact }: { turn: TurnAuthor; policy: OrgPolicy; fact: TaggedFact },
  decision: Decision,
): NewSharedMemory | undefined {
  const addition = additionOf(decision)
  if (!addition) return undefined
  const { text, pending, unseen } = addition
  const confidenceMax = pending || unseen ? contestedConfidence : 1
  return {
    text,
    tags: currentTags(policy, fact),
    confidence: Math.min(fact.confidence, confidenceMax),
    author: turn.author,
    reviewed: false,
    ...(pending && { pending }),
    acquiredAt: turn.saidAt.getTime(),
  }
}

/** Whether the memory was changed or removed between the decision and its execution. */
export const isStaleDecision = (error: unknown): boolean =>
  error instanceof Refusal && (error.reason === 'conflict' || error.reason === 'missing')

/**
 * Stores every fact of a turn as a statement that its author can list. Facts that were left out because a hidden
 * memory says them are stored too, so the list does not reveal hidden memories.
 */
export async function recordStatements(
  tx: Transaction,
  { turn, policy, facts, decisions }: DecidedTurn,
): Promise<void> {
  const statements = decisions.flatMap((decision, position) => {
    const { action, mem_id, outdated = false, also = [], copy } = decision
    if (mem_id === null) return []
    // The new words of an update are made of the memory's as well.
    const fact = action === 'UPDATE' ? facts[position]! : decision
    const words = findExecRule(policy, fact.text) ? decision.text : fact.text
    const text = redactOrSkipText(policy.redaction, words)
    if (text === undefined) return []
    // Each memory that the fact changed, and its copy, is a statement that is taken back by itself.
    const changed = [
      { memory: mem_id, action },
      ...also.map(one => ({ memory: one.mem_id, action })),
    ]
    if (copy?.mem_id) changed.push({ memory: copy.mem_id, action: 'ADD' })
    return changed.map((one, index) => ({
      ...one,
      outdated,
      text,
      position: position + decisions.length * index,
    }))
  })
  await insertStatements(tx, { turn: turn.id, saidAt: turn.saidAt }, statements)
}
