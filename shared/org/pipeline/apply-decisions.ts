import { Refusal } from '#shared/core/errors.ts'
import { idForPurpose } from '#shared/core/ids.ts'
import { currentTags } from '#shared/org/pipeline/batch-facts.ts'
import { reviewThreshold } from '#shared/org/memories/shared-memories.mongo.ts'
import {
  noSuchSharedMemory,
  type ChangeOrigin,
  type SharedMemoryBackend,
} from '#shared/org/memories/shared-change.ts'
import {
  addSharedMemories,
  updateSharedMemory,
  type SharedMemoryChange,
  type NewSharedMemory,
} from '#shared/org/memories/write-shared-memories.ts'
import { confirmShared } from '#shared/org/memories/shared-writes.mongo.ts'
import type { OrgPolicy } from '#shared/org/base/org-policy.postgres.ts'
import type { Decision, TaggedFact, TurnRow } from '#shared/org/base/org-turns.postgres.ts'
import { isBlockedByRedaction, redactOrSkipText } from '#shared/privacy/apply-redaction.ts'
import { findExecRule } from '#shared/org/base/rule-matching.ts'
import { insertStatements } from '#shared/org/memories/shared-statements.postgres.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'

/** What the ids of added memories are made of: others for another decision about the same turn. */
export function deriveIdSeed({ id }: Pick<TurnRow, 'id'>, decisions: readonly Decision[]): string {
  const added = decisions.flatMap(decision => additionOf(decision)?.text ?? [])
  return idForPurpose(id, `shared ${JSON.stringify(added)}`)
}

/** What a decision adds: an addition itself, or the copy of an update. */
const additionOf = ({
  action,
  copy,
  ...decision
}: Decision): Pick<Decision, 'text' | 'pending' | 'unseen'> | undefined => {
  if (action === 'ADD') return decision
  return copy && { text: copy.text, pending: true }
}

type DecidedTurn = {
  turn: TurnRow
  policy: OrgPolicy
  facts: readonly TaggedFact[]
  decisions: readonly Decision[]
}

/**
 * Carries out what was decided about the facts of a turn: updates, confirmations, additions. Safe to run any
 * number of times.
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

/** A fact that the policy blocks by now is not shared. */
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

/** Surely below the threshold, and not what is least sure. */
const contestedConfidence = 0.5

/** In the order that their ids were made in. */
const toAdditions = ({ turn, policy, facts, decisions }: DecidedTurn): NewSharedMemory[] =>
  decisions.flatMap((decision, index) => {
    const addition = additionOf(decision)
    if (!addition) return []
    const { text, pending, unseen } = addition
    const fact = facts[index]!
    return [
      {
        text,
        tags: currentTags(policy, fact),
        // However sure its tags are: what becomes of it is for a person to say.
        confidence:
          pending || unseen ? Math.min(fact.confidence, contestedConfidence) : fact.confidence,
        author: turn.author,
        reviewed: false,
        ...(pending && { pending }),
        acquiredAt: turn.saidAt.getTime(),
      },
    ]
  })

/** The memory was changed or removed between the decision and its execution. */
export const isStaleDecision = (error: unknown): boolean =>
  error instanceof Refusal && (error.reason === 'conflict' || error.reason === 'missing')

/**
 * Records what the shared memory has from a turn, for its author to see. A fact that is left out because a
 * memory hidden from its author says it is recorded as any other: whether it is listed tells nothing.
 */
export async function recordStatements(
  tx: Transaction,
  { turn, policy, facts, decisions }: DecidedTurn,
): Promise<void> {
  const statements = decisions.flatMap((decision, position) => {
    const { action, mem_id: memory, outdated = false, also = [], copy } = decision
    if (memory === null) return []
    // The new words of an update are made of the memory's as well.
    const fact = action === 'UPDATE' ? facts[position]! : decision
    const words = findExecRule(policy, fact.text) ? decision.text : fact.text
    const text = redactOrSkipText(policy.redaction, words)
    if (text === undefined) return []
    const statement = { position, memory, action, outdated, text }
    // Further memories that the fact changed, and its copy, are taken back one by one.
    const others = also.map(({ mem_id }) => ({ memory: mem_id, action }))
    if (copy?.mem_id) others.push({ memory: copy.mem_id, action: 'ADD' })
    const further = others.map((other, index) => ({
      ...statement,
      ...other,
      position: position + decisions.length * (index + 1),
    }))
    return [statement, ...further]
  })
  await insertStatements(tx, { turn: turn.id, saidAt: turn.saidAt }, statements)
}
