import type { CompletionBackend } from '#shared/org/pipeline/cached-completion.ts'
import {
  currentTags,
  earlierFacts,
  isUnstored,
  type BatchFact,
} from '#shared/org/pipeline/batch-facts.ts'
import { isDoubtfullyOpen, markDoubtfulAdditions } from '#shared/org/pipeline/doubtful-additions.ts'
import { compareFacts, type ComparisonInput } from '#shared/org/pipeline/compare-facts.ts'
import type { ComparisonAnswer } from '#shared/org/pipeline/judged-facts.ts'
import {
  findNearbyVisible,
  type NearMemory,
  type NearbyMemories,
} from '#shared/org/pipeline/nearest-shared.ts'
import { skipHiddenDuplicates } from '#shared/org/pipeline/hidden-duplicates.ts'
import {
  isDecidedByPerson,
  isNamedBy,
  recheckUpdates,
} from '#shared/org/pipeline/recheck-updates.ts'
import {
  fallbackNote,
  matchesAntiRule,
  noteMax,
  findExecRule,
} from '#shared/org/base/rule-matching.ts'
import { findAuthorScope } from '#shared/access/key-row.postgres.ts'
import type { OrgPolicy } from '#shared/org/base/org-policy.postgres.ts'
import type { Decision, TurnRow } from '#shared/org/base/org-turns.postgres.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { QueryVectorCache } from '#shared/search/query/query-vector-cache.ts'
import type { VaultIndexes } from '#shared/search/index/vault-indexes.ts'
import type { NearestSearch } from '#shared/vault/read/search/nearest.ts'

type DecideBackend = CompletionBackend & {
  mongo: Mongo
  embedders: Embedders
  queryVectors: QueryVectorCache
  vaultIndexes: VaultIndexes
  nearest: NearestSearch
  now: () => number
}

type DecisionInput = {
  /** The turn that answers are stored under. */
  leader: TurnRow
  policy: OrgPolicy
  /** Of one turn or several of one member, in the order they were said. */
  facts: readonly BatchFact[]
  /** Only with answers that are stored. */
  storedOnly?: boolean
} & Pick<ComparisonInput, 'judged' | 'usesJudged'>

/**
 * What to do about each fact, in their order: a model is asked where there are memories near them, and
 * can name no others. Added memories have no id yet. What the author may not see by the roles they have
 * at this moment takes no part in it, but for one thing that they could not notice: a fact that they
 * will not see either is left out when such a memory says it already.
 *
 * Facts of a turn that go on from an earlier turn of the same batch are not decided before that one is
 * settled: then the result ends before that turn, and never before the second.
 *
 * @throws Refusal as `cachedCompletion`, and `unavailable` when the memory store is out of reach;
 *   `AnswerMissing` with `storedOnly`.
 */
export async function decideFacts(
  backend: DecideBackend,
  { judged, usesJudged, ...input }: DecisionInput,
  signal: AbortSignal,
): Promise<Decision[]> {
  const facts = applyCurrentRules(input)
  const author = await findAuthorScope(backend.postgres.query, input.leader.id)
  // The turn is gone, and nothing will be written about it.
  if (!author) return facts.map(toNoAction)
  const visible = withEarlierFacts(
    facts,
    await findNearbyVisible(backend, author, facts.map(textOf)),
  )
  const question = { ...input, facts, ...visible, judged, usesJudged }
  const first = await compareFacts(backend, question, signal)
  const count = countSettled(facts, first)
  const about = { ...input, facts: facts.slice(0, count), near: visible.near.slice(0, count) }
  const answers = await recheckUpdates(
    backend,
    { ...about, memories: visible.memories },
    first,
    signal,
  )
  const decisions = toDecisions(about, answers)
  const shown = await skipHiddenDuplicates(backend, { ...about, author, decisions }, signal)
  return markDoubtfulAdditions(backend, { ...about, author, decisions: shown })
}

/** The facts after the rules that were added since they were extracted. */
const applyCurrentRules = ({ policy, facts }: DecisionInput): BatchFact[] =>
  facts.map(fact => {
    const rule = fact.isNote ? undefined : findExecRule(policy, fact.text)
    // What an anti-rule matches by now is left out by its own words, not by those of the note.
    const isWithheld = matchesAntiRule(policy, fact.text)
    return { ...fact, ...(rule && { text: fallbackNote(rule) }), ...(isWithheld && { isWithheld }) }
  })

/** Beside the memories near each fact, the facts of earlier turns. */
function withEarlierFacts(facts: readonly BatchFact[], { near }: NearbyMemories): NearbyMemories {
  const earlier = earlierFacts(facts)
  const all = near.map((memories, index) => [...memories, ...earlier[index]!])
  return { memories: [...new Set(all.flat())], near: all }
}

/** How many facts do not go on from an earlier turn: all, or those before the first turn that does. */
function countSettled(
  facts: readonly BatchFact[],
  answers: readonly (readonly ComparisonAnswer[])[],
): number {
  const changedBy = new Map<string, TurnRow>()
  for (const [index, { turn }] of facts.entries()) {
    for (const { action, mem_id: id } of answers[index]!) {
      if (action === 'ADD' || id === null) continue
      const earlier = changedBy.get(id)
      if (isUnstored(id) || (action === 'UPDATE' && earlier !== undefined && earlier !== turn)) {
        return facts.findIndex(fact => fact.turn === turn)
      }
      if (action === 'UPDATE') changedBy.set(id, turn)
    }
  }
  return facts.length
}

type NearFacts = DecisionInput & Pick<NearbyMemories, 'near'>

function toDecisions(
  input: NearFacts,
  answers: readonly (readonly ComparisonAnswer[])[],
): Decision[] {
  const { facts, near } = input
  const updated = new Set<string>()
  return facts.map((fact, index) => {
    const isRepeated = facts.findIndex(({ text }) => text === fact.text) < index
    if (isRepeated || fact.isWithheld) return toNoAction(fact)
    const [answer, ...others] = answers[index]!
    const decision = toDecision(input, fact, near[index]!, answer)
    if (decision.action !== 'UPDATE') return decision
    // The second of two would undo the first: both were written on the memory as it was.
    if (updated.has(decision.mem_id!)) return toAddition(fact)
    updated.add(decision.mem_id!)
    const also = others.flatMap(other => {
      const further = toDecision(input, fact, near[index]!, other)
      if (further.action !== 'UPDATE' || updated.has(further.mem_id!)) return []
      updated.add(further.mem_id!)
      return [{ text: further.text, mem_id: further.mem_id!, version: further.version! }]
    })
    const ids = new Set([decision, ...also].map(({ mem_id: id }) => id))
    const changed = near[index]!.filter(({ id }) => ids.has(id))
    const tags = currentTags(input.policy, fact)
    // Those who see the fact and none of the changed memories would not learn of it.
    const isHeldBack = changed.every(memory => isNarrower(memory, tags))
    return {
      ...decision,
      ...(also.length > 0 && { also }),
      ...(isHeldBack && { copy: { text: fact.text, mem_id: null } }),
    }
  })
}

const textOf = ({ text }: { text: string }): string => text
const toAddition = ({ text }: { text: string }): Decision => ({ text, action: 'ADD', mem_id: null })
const toNoAction = ({ text }: { text: string }): Decision => ({
  text,
  action: 'NONE',
  mem_id: null,
})

/** Whether a memory has tags that a fact has not: some who may see the fact do not see the memory. */
const isNarrower = (memory: NearMemory, tags: readonly string[]): boolean =>
  memory.tags.some(tag => !tags.includes(tag))

/** When a member last said what it says. */
const lastSaidAt = ({ acquiredAt, confirmedAt = 0 }: NearMemory): number =>
  Math.max(acquiredAt, confirmedAt)

/**
 * What is made of the model's answer. It can only point to a memory near the fact, and an update never
 * changes who may see a memory: a fact with a tag that the memory has not stands by itself. Nor does it
 * replace words that a person has decided about: the fact is added beside them, for a person to decide
 * again. What was said earlier than the words of the memory is outdated: it neither replaces them nor
 * stands beside them, whenever it arrives. An answer that cannot be carried out becomes an addition, so that nothing is lost or overwritten.
 */
function toDecision(
  { policy }: Pick<DecisionInput, 'policy'>,
  fact: BatchFact,
  near: readonly NearMemory[],
  answer: ComparisonAnswer | undefined,
): Decision {
  const memory = near.find(isNamedBy(answer))
  if (!answer || !memory || answer.action === 'ADD') return toAddition(fact)
  const { id, version } = memory
  // An open fact does not disappear into a memory that fewer may see.
  if (answer.action === 'NONE' && isNarrower(memory, currentTags(policy, fact))) {
    return { ...toAddition(fact), pending: true }
  }
  if (answer.action === 'NONE') return { text: fact.text, action: 'NONE', mem_id: id }
  if (lastSaidAt(memory) > fact.turn.saidAt.getTime()) {
    return { text: fact.text, action: 'NONE', mem_id: id, outdated: true }
  }
  if (isDecidedByPerson(memory)) return { ...toAddition(fact), replaces: id, pending: true }
  const text = answer.text.replaceAll(/\s+/g, ' ').trim()
  const isOpener = currentTags(policy, fact).some(tag => !memory.tags.includes(tag))
  if (text === '' || isOpener || matchesAntiRule(policy, text)) return toAddition(fact)
  if (findExecRule(policy, text) && text.length > noteMax) return toAddition(fact)
  // What is open to all does not become private by being changed: a person looks at it first.
  if (memory.tags.length === 0 && isDoubtfullyOpen(policy, fact, `${fact.text}\n${text}`)) {
    return { ...toAddition(fact), replaces: id, pending: true }
  }
  return { text, action: 'UPDATE', mem_id: id, version }
}
