import type { SharedMemory } from '#shared/org/shared-memories.mongo.ts'
import { visibilityOf, isPermitted } from '#shared/domain/visibility.ts'
import type { CompletionBackend } from '#shared/org/pipeline/cached-completion.ts'
import { compareFacts, type ComparisonAnswer } from '#shared/org/pipeline/compare-facts.ts'
import {
  findNearbyHidden,
  findNearbyVisible,
  type NearbyMemories,
} from '#shared/org/pipeline/nearest-shared.ts'
import { fallbackNote, matchesAntiRule, noteMax, findExecRule } from '#shared/org/rule-matching.ts'
import type { MemberScope } from '#shared/domain/member-scope.ts'
import { findAuthorScope } from '#shared/access/member-scope.postgres.ts'
import type { OrgPolicy } from '#shared/org/org-policy.postgres.ts'
import type { Decision, TaggedFact, TurnRow } from '#shared/org/org-turns.postgres.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { QueryVectorCache } from '#shared/search/query/query-vector-cache.ts'
import type { VaultIndexes } from '#shared/search/index/vault-indexes.ts'
import type { NearestSearch } from '#shared/vault/read/nearest.ts'

type DecideBackend = CompletionBackend & {
  mongo: Mongo
  embedders: Embedders
  queryVectors: QueryVectorCache
  vaultIndexes: VaultIndexes
  nearest: NearestSearch
  now: () => number
}

type DecisionInput = { turn: TurnRow; policy: OrgPolicy; facts: readonly TaggedFact[] }

/**
 * What to do about each fact, in their order: a model is asked where there are memories near them, and
 * can name no others. Added memories have no id yet. What the author may not see by the roles they have
 * at this moment takes no part in it, but for one thing that they could not notice: a fact that they
 * will not see either is left out when such a memory says it already.
 *
 * @throws Refusal as `askOnce`, and `unavailable` when the memory store is out of reach.
 */
export async function decideFacts(
  backend: DecideBackend,
  input: DecisionInput,
  signal: AbortSignal,
): Promise<Decision[]> {
  const { turn, policy } = input
  const facts = applyCurrentRules(input)
  const about = { turn, policy, facts }
  const author = await findAuthorScope(backend.postgres.query, turn.id)
  // The turn is gone, and nothing will be written about it.
  if (!author) return facts.map(toNoAction)
  const visible = await findNearbyVisible(backend, author, facts.map(textOf))
  const first = await compareFacts(backend, { ...about, ...visible }, signal)
  const answers = await recheckUpdates(backend, { ...about, ...visible }, first, signal)
  const updated = new Set<string>()
  const decisions = facts.map((fact, index) => {
    const isRepeated = facts.findIndex(({ text }) => text === fact.text) < index
    if (isRepeated || matchesAntiRule(policy, input.facts[index]!.text)) return toNoAction(fact)
    const decision = toDecision(about, fact, visible.near[index]!, answers[index])
    if (decision.action !== 'UPDATE') return decision
    // The second of two would undo the first: both were written on the memory as it was.
    if (updated.has(decision.mem_id!)) return toAddition(fact)
    updated.add(decision.mem_id!)
    return decision
  })
  return skipHiddenDuplicates(backend, { ...about, author, decisions }, signal)
}

/** The facts as rules leave them that came while they were on their way. */
const applyCurrentRules = ({ turn, policy, facts }: DecisionInput): TaggedFact[] =>
  facts.map((fact, index) => {
    const rule = turn.pass1?.[index]?.note ? undefined : findExecRule(policy, fact.text)
    return rule ? { ...fact, text: fallbackNote(rule) } : fact
  })

/**
 * The answers, with others in the place of those that would change a memory in sight of something its
 * readers may not see: what is said there could find its way into the new words, if only because
 * somebody has worded it as an instruction to the model. Those are asked for again without it.
 */
async function recheckUpdates(
  backend: DecideBackend,
  { facts, memories, near, ...about }: DecisionInput & NearbyMemories,
  answers: readonly ComparisonAnswer[],
  signal: AbortSignal,
): Promise<ComparisonAnswer[]> {
  const shown = [...memories, ...facts.map(fact => ({ tags: currentTags(about.policy, fact) }))]
  const revised = [...answers]
  for (const [index, answer] of answers.entries()) {
    const changed = near[index]!.find(isNamedBy(answer))
    if (answer.action !== 'UPDATE' || !changed || isDecidedByPerson(changed)) continue
    const readers = visibilityOf({ wildcard: false, allowedTags: [...changed.tags] })
    const isVisibleToReaders = ({ tags }: { tags: readonly string[] }) => isPermitted(readers, tags)
    if (shown.every(isVisibleToReaders)) continue
    const open = near[index]!.filter(isVisibleToReaders)
    const retryInput = { ...about, facts: [facts[index]!], memories: open, near: [open] }
    const [retried] = await compareFacts(backend, retryInput, signal)
    const isOther = retried?.action === 'UPDATE' && retried.mem_id !== changed.id
    revised[index] = retried && !isOther ? retried : { action: 'ADD', mem_id: null, text: '' }
  }
  return revised
}

/** A fact that a memory hidden from its author contains already is not added again. */
async function skipHiddenDuplicates(
  backend: DecideBackend,
  { author, decisions, ...about }: DecisionInput & { author: MemberScope; decisions: Decision[] },
  signal: AbortSignal,
): Promise<Decision[]> {
  const { policy, facts } = about
  const visibility = visibilityOf(author)
  const unseen = facts.flatMap((fact, index) => {
    const tags = currentTags(policy, fact)
    const isAdded = decisions[index]!.action === 'ADD'
    return isAdded && !isPermitted(visibility, tags) ? [{ fact: { ...fact, tags }, index }] : []
  })
  const asked = unseen.map(({ fact }) => fact)
  const hidden = await findNearbyHidden(backend, author, asked)
  const answers = await compareFacts(backend, { ...about, facts: asked, ...hidden }, signal)
  const known = new Map(
    unseen.flatMap(({ index }, at) => {
      const answer = answers[at]
      // Words of an answer about what the author may not see go nowhere.
      const isDuplicate = answer?.action === 'NONE' && hidden.near[at]!.some(isNamedBy(answer))
      return isDuplicate ? [[index, answer.mem_id]] : []
    }),
  )
  return decisions.map((decision, index) =>
    known.has(index) ? { ...toNoAction(decision), mem_id: known.get(index)! } : decision,
  )
}

const textOf = ({ text }: { text: string }): string => text
const toAddition = ({ text }: { text: string }): Decision => ({ text, action: 'ADD', mem_id: null })
const toNoAction = ({ text }: { text: string }): Decision => ({
  text,
  action: 'NONE',
  mem_id: null,
})

/** A person has reviewed or worded it. */
const isDecidedByPerson = ({ reviewed, byHand = false }: SharedMemory): boolean =>
  reviewed || byHand

const isNamedBy =
  (answer: ComparisonAnswer | undefined) =>
  ({ id }: SharedMemory): boolean =>
    id === answer?.mem_id

/**
 * What is made of the model's answer. It can only point to a memory near the fact, and an update never
 * changes who may see a memory: a fact with a tag that the memory has not stands by itself. Nor does it
 * replace words that a person has decided about: the fact is added beside them, for a person to decide
 * again. Nor does what was said earlier replace what was said later, though it comes after it. An answer
 * that cannot be carried out becomes an addition, so that nothing is lost or overwritten.
 */
function toDecision(
  { turn, policy }: Pick<DecisionInput, 'turn' | 'policy'>,
  fact: TaggedFact,
  near: readonly SharedMemory[],
  answer: ComparisonAnswer | undefined,
): Decision {
  const memory = near.find(isNamedBy(answer))
  if (!answer || !memory || answer.action === 'ADD') return toAddition(fact)
  const { id, version } = memory
  if (answer.action === 'NONE') return { text: fact.text, action: 'NONE', mem_id: id }
  if (memory.acquiredAt > turn.saidAt.getTime()) return toAddition(fact)
  if (isDecidedByPerson(memory)) return { ...toAddition(fact), replaces: id }
  const text = answer.text.replaceAll(/\s+/g, ' ').trim()
  const isOpener = currentTags(policy, fact).some(tag => !memory.tags.includes(tag))
  if (text === '' || isOpener || matchesAntiRule(policy, text)) return toAddition(fact)
  if (findExecRule(policy, text) && text.length > noteMax) return toAddition(fact)
  return { text, action: 'UPDATE', mem_id: id, version }
}

/**
 * The labels that the tags of a fact have by now. That of a tag which was deleted meanwhile stays: then
 * only roles that may see everything see the memory. Where another tag has it by now, and would open it,
 * the id of the deleted one stands for it.
 */
export function currentTags(
  { tags }: Pick<OrgPolicy, 'tags'>,
  fact: Pick<TaggedFact, 'tags' | 'tagIds'>,
): string[] {
  const labels = new Map(tags.map(({ id, label }) => [id, label]))
  const taken = new Set(tags.flatMap(({ label, former }) => [label, ...former]))
  return fact.tagIds.map((id, index) => {
    const label = fact.tags[index]!
    return labels.get(id) ?? (taken.has(label) ? id : label)
  })
}
