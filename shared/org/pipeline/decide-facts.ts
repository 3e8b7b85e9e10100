import type { MemberScope } from '#shared/domain/member-scope.ts'
import { isPermitted, visibilityOf } from '#shared/domain/visibility.ts'
import type { OrgPolicy } from '#shared/org/base/org-policy.postgres.ts'
import type { Decision } from '#shared/org/base/org-turns.postgres.ts'
import { fallbackNote, findExecRule, matchesAntiRule } from '#shared/org/base/rule-matching.ts'
import { findPending } from '#shared/org/memories/shared-lists.mongo.ts'
import {
  currentTags,
  earlierFacts,
  isUnstored,
  type BatchFact,
} from '#shared/org/pipeline/batch-facts.ts'
import type { AskModel, TurnAuthor } from '#shared/org/pipeline/cached-completion.ts'
import {
  compareFacts,
  type Comparison,
  type ComparisonAnswer,
  type FactAnswers,
  type NearbyFact,
} from '#shared/org/pipeline/compare-facts.ts'
import {
  decideByRules,
  isDecidedByPerson,
  isDoubtfullyOpen,
  isNamedBy,
  isNarrower,
  toAddition,
  toNoAction,
} from '#shared/org/pipeline/decision-rules.ts'
import {
  findNearbyHidden,
  findNearbyVisible,
  type NearestBackend,
  type NearMemory,
} from '#shared/org/pipeline/nearest-shared.ts'
import { wordsIn } from '#shared/org/pipeline/text-words.ts'

type DecideBackend = NearestBackend & { ask: AskModel }

/** A fact with all that is known of it once the rules have decided. */
type DecidedFact = FactAnswers & { decision: Decision }

/**
 * Decides what to do about each fact, in order. A model is asked where memories are near a fact, and can name no
 * others. Added memories have no id yet. Memories that the author may not see by their roles now take no part,
 * with one exception that they cannot notice: a fact that they will not see either is left out when such a
 * memory says it.
 *
 * A fact that goes on from an earlier turn of the batch waits until that turn is settled: the result ends
 * before the turn of the fact, and never before the second turn.
 *
 * @throws Refusal as the asked model, and `unavailable` when the memory store is out of reach;
 *   `AnswerMissing` with `storedOnly`.
 */
export async function decideFacts(
  backend: DecideBackend,
  input: Omit<Comparison, 'model'> & {
    facts: readonly BatchFact[]
    /** What their author may see now; undefined once the turn is gone. */
    findAuthor: () => Promise<MemberScope | undefined>
  },
  signal: AbortSignal,
): Promise<Decision[]> {
  const { facts, findAuthor, ...comparison } = input
  const { ask } = backend
  const { policy } = comparison
  const currentFacts = facts.map(fact => applyCurrentRules(policy, fact))
  const author = await findAuthor()
  // The turn is gone, and nothing will be written about it.
  if (!author) return currentFacts.map(toNoAction)
  const nearbyFacts = await findNearby(backend, author, currentFacts)
  const factAnswers = await compareFacts(ask, comparison, nearbyFacts, signal)
  const settledFacts = factAnswers.slice(0, countSettled(factAnswers))
  // The questions that follow never reuse earlier answers: these were given about other memories.
  const question = { ...comparison, earlierAnswers: undefined }
  const shown = nearbyFacts.flatMap(({ near }) => near)
  const recheckedFacts = await recheckUpdates(ask, question, settledFacts, shown, signal)
  const decided = applyDecisionRules(policy, recheckedFacts)
  const withoutHidden = await skipHiddenDuplicates(backend, question, { author, decided }, signal)
  return markDoubtfulAdditions(backend, policy, { author, decided: withoutHidden })
}

/** Applies the rules that were added since the fact was extracted. */
function applyCurrentRules(policy: OrgPolicy, fact: BatchFact): BatchFact {
  const rule = fact.isNote ? undefined : findExecRule(policy, fact.text)
  // An anti-rule is looked for in the words of the fact, not in those of the note.
  const isWithheld = matchesAntiRule(policy, fact.text)
  return { ...fact, ...(rule && { text: fallbackNote(rule) }), ...(isWithheld && { isWithheld }) }
}

/** Finds the memories near each fact that its author may see; the facts of earlier turns count as such. */
async function findNearby(
  backend: DecideBackend,
  author: MemberScope,
  facts: readonly BatchFact[],
): Promise<NearbyFact[]> {
  const texts = facts.map(({ text }) => text)
  const visible = await findNearbyVisible(backend, author, texts)
  const earlier = earlierFacts(facts)
  return facts.map((fact, index) => ({ fact, near: [...visible[index]!, ...earlier[index]!] }))
}

/** Counts the facts before the first turn that goes on from an earlier one. */
function countSettled(answered: readonly FactAnswers[]): number {
  const changedBy = new Map<string, TurnAuthor>()
  for (const { fact, answers } of answered) {
    for (const { action, mem_id: id } of answers) {
      if (action === 'ADD' || id === null) continue
      const earlier = changedBy.get(id)
      const goesOn = action === 'UPDATE' && earlier !== undefined && earlier !== fact.turn
      if (isUnstored(id) || goesOn) {
        return answered.findIndex(item => item.fact.turn === fact.turn)
      }
      if (action === 'UPDATE') changedBy.set(id, fact.turn)
    }
  }
  return answered.length
}

/**
 * Replaces each answer that would change a memory when the question also showed texts that readers of the
 * memory may not see: such a text could get into the new wording, for example as an instruction to the
 * model. These facts are asked about again without those texts, those with the same readers in one call. A
 * wording that has all of its words from the fact and the memory is taken as it is.
 *
 * @param memories all that the question showed
 */
async function recheckUpdates(
  ask: AskModel,
  comparison: Comparison,
  facts: readonly FactAnswers[],
  memories: readonly NearMemory[],
  signal: AbortSignal,
): Promise<FactAnswers[]> {
  const { policy } = comparison
  const texts = [...memories, ...facts.map(({ fact }) => ({ tags: currentTags(policy, fact) }))]
  const doubts = facts.flatMap(item =>
    item.answers.flatMap(answer => {
      const changed = findDoubted(item, answer, texts)
      return changed ? [{ item, answer, changed }] : []
    }),
  )
  const replacements = new Map<ComparisonAnswer, ComparisonAnswer>()
  const byReaders = Map.groupBy(doubts, ({ changed }) => JSON.stringify(changed.tags.toSorted()))
  for (const group of byReaders.values()) {
    const isReadable = isReadableBy(group[0]!.changed)
    const items = [...new Set(group.map(({ item }) => item))]
    const questions = items.map(({ fact, near }) => ({ fact, near: near.filter(isReadable) }))
    const newAnswers = await compareFacts(ask, comparison, questions, signal)
    for (const { item, answer, changed } of group) {
      const { answers } = newAnswers[items.indexOf(item)]!
      const sameUpdate = answers.find(again => again.mem_id === changed.id)
      const noUpdate = answers.find(({ action }) => action !== 'UPDATE')
      replacements.set(answer, sameUpdate ?? noUpdate ?? { action: 'ADD', mem_id: null, text: '' })
    }
  }
  return facts.map(item => ({
    ...item,
    answers: item.answers.map(answer => replacements.get(answer) ?? answer),
  }))
}

/** The memory that an answer changes, if its wording may hold words of a text that its readers may not see. */
function findDoubted(
  { fact, near }: FactAnswers,
  answer: ComparisonAnswer,
  shown: readonly { tags: readonly string[] }[],
): NearMemory | undefined {
  const changed = near.find(isNamedBy(answer))
  if (answer.action !== 'UPDATE' || !changed || isDecidedByPerson(changed)) return undefined
  const knownWords = new Set([fact.text, changed.text].flatMap(wordsIn))
  const isPlain = wordsIn(answer.text).every(word => knownWords.has(word))
  return isPlain || shown.every(isReadableBy(changed)) ? undefined : changed
}

/** Whether those who may read a memory may read another text. */
const isReadableBy = ({ tags }: NearMemory) => {
  const readers = visibilityOf({ wildcard: false, allowedTags: [...tags] })
  return (text: { tags: readonly string[] }): boolean => isPermitted(readers, text.tags)
}

/** Applies the rules to every answer; each memory is changed once, as every answer was given about it as it was. */
function applyDecisionRules(policy: OrgPolicy, facts: readonly FactAnswers[]): DecidedFact[] {
  const texts = new Set<string>()
  const updated = new Set<string | null>()
  return facts.map(item => {
    const isRepeated = texts.has(item.fact.text)
    texts.add(item.fact.text)
    const isSkipped = isRepeated || item.fact.isWithheld
    const decision = isSkipped ? toNoAction(item.fact) : decideAnswers(policy, item, updated)
    return { ...item, decision }
  })
}

/**
 * Joins what the rules make of the answers about one fact.
 *
 * @param updated the memories that facts before it change; those that this one changes are added
 */
function decideAnswers(
  policy: OrgPolicy,
  { fact, near, answers }: FactAnswers,
  updated: Set<string | null>,
): Decision {
  const [answer, ...furtherAnswers] = answers
  const decision = decideByRules(policy, fact, near, answer)
  if (decision.action !== 'UPDATE') return decision
  if (updated.has(decision.mem_id)) return toAddition(fact)
  updated.add(decision.mem_id)
  const also = furtherAnswers.flatMap(furtherAnswer => {
    const { action, text, mem_id, version } = decideByRules(policy, fact, near, furtherAnswer)
    if (action !== 'UPDATE' || updated.has(mem_id)) return []
    updated.add(mem_id)
    return [{ text, mem_id: mem_id!, version: version! }]
  })
  const ids = new Set([decision, ...also].map(({ mem_id: id }) => id))
  const changedMemories = near.filter(({ id }) => ids.has(id))
  // Those who see the fact and none of the changed memories would not learn of it.
  const tags = currentTags(policy, fact)
  const isHeldBack = changedMemories.every(memory => isNarrower(memory, tags))
  return {
    ...decision,
    ...(also.length > 0 && { also }),
    ...(isHeldBack && { copy: { text: fact.text, mem_id: null } }),
  }
}

/** Adds no fact that its author may not see and that a memory hidden from them says. */
async function skipHiddenDuplicates(
  backend: DecideBackend,
  { policy, ...comparison }: Comparison,
  { author, decided }: { author: MemberScope; decided: readonly DecidedFact[] },
  signal: AbortSignal,
): Promise<DecidedFact[]> {
  const visibility = visibilityOf(author)
  const unseenItems = decided
    .filter(({ decision }) => decision.action === 'ADD')
    .map(item => ({ item, fact: { ...item.fact, tags: currentTags(policy, item.fact) } }))
    .filter(({ fact }) => !isPermitted(visibility, fact.tags))
  const facts = unseenItems.map(({ fact }) => fact)
  const hidden = await findNearbyHidden(backend, author, facts)
  const hiddenAnswers = await compareFacts(
    backend.ask,
    // Whether two texts say the same is a question for the small model.
    { ...comparison, policy, model: policy.classifyModel },
    facts.map((fact, index) => ({ fact, near: hidden[index]! })),
    signal,
  )
  const hiddenSayers = new Map(
    unseenItems.flatMap(({ item }, index) => {
      const { near, answers } = hiddenAnswers[index]!
      const [answer] = answers
      // The wording of such an answer goes nowhere.
      const isDuplicate = answer?.action === 'NONE' && near.some(isNamedBy(answer))
      return isDuplicate ? [[item, answer.mem_id] as const] : []
    }),
  )
  return decided.map(item => {
    const sayer = hiddenSayers.get(item)
    if (sayer === undefined) return item
    return { ...item, decision: { ...toNoAction(item.decision), mem_id: sayer, hidden: true } }
  })
}

/**
 * Marks doubts about additions: one that may not be for everyone waits unseen, one that its own author may
 * not see is looked at by a person. Words that wait already are not added again, nor as the copy of an update.
 *
 * @throws Refusal `unavailable` when the memory store is out of reach.
 */
async function markDoubtfulAdditions(
  { mongo }: Pick<DecideBackend, 'mongo'>,
  policy: OrgPolicy,
  { author, decided }: { author: MemberScope; decided: readonly DecidedFact[] },
): Promise<Decision[]> {
  const visibility = visibilityOf(author)
  const markedDecisions: Decision[] = []
  for (const { fact, decision } of decided) {
    const { copy, ...withoutCopy } = decision
    if (decision.action !== 'ADD') {
      const isKnown = copy && (await findPending(mongo, policy, copy.text)) !== undefined
      markedDecisions.push(isKnown ? withoutCopy : decision)
      continue
    }
    const pending = decision.pending || isDoubtfullyOpen(policy, fact, decision.text)
    const unseen = !isPermitted(visibility, currentTags(policy, fact))
    const waitingId = pending ? await findPending(mongo, policy, decision.text) : undefined
    markedDecisions.push(
      waitingId === undefined
        ? { ...decision, ...(pending && { pending }), ...(unseen && { unseen }) }
        : { ...toNoAction(decision), mem_id: waitingId },
    )
  }
  return markedDecisions
}
