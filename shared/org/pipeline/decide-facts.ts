import type { MemberScope } from '#shared/domain/member-scope.ts'
import { isPermitted, visibilityOf } from '#shared/domain/visibility.ts'
import type { Decision } from '#shared/org/base/org-turns.postgres.ts'
import { fallbackNote, findExecRule, matchesAntiRule } from '#shared/org/base/rule-matching.ts'
import { findPending } from '#shared/org/memories/shared-lists.mongo.ts'
import {
  currentTags,
  earlierFacts,
  isUnstored,
  type BatchFact,
} from '#shared/org/pipeline/batch-facts.ts'
import type { AskModel, Said } from '#shared/org/pipeline/cached-completion.ts'
import {
  compareFacts,
  type ComparisonAnswer,
  type ComparisonInput,
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

/** Facts of one turn, or of several turns of one member in the order they were said. */
type DecisionInput = Omit<ComparisonInput, 'near' | 'model'> & {
  /** What their author may see now; undefined once the turn is gone. */
  findAuthor: () => Promise<MemberScope | undefined>
}

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
  { judged, usesJudged, findAuthor, ...input }: DecisionInput,
  signal: AbortSignal,
): Promise<Decision[]> {
  const { ask } = backend
  const facts = applyCurrentRules(input)
  const author = await findAuthor()
  // The turn is gone, and nothing will be written about it.
  if (!author) return facts.map(toNoAction)
  const texts = facts.map(({ text }) => text)
  const visible = withEarlierFacts(facts, await findNearbyVisible(backend, author, texts))
  const question = { ...input, facts, near: visible, judged, usesJudged }
  const first = await compareFacts(ask, question, signal)
  const count = countSettled(facts, first)
  const about = { ...input, facts: facts.slice(0, count), near: visible.slice(0, count) }
  const answers = await recheckUpdates(
    ask,
    about,
    { answers: first, memories: visible.flat() },
    signal,
  )
  const decided = { ...about, author, decisions: toDecisions(about, answers) }
  const decisions = await skipHiddenDuplicates(backend, decided, signal)
  return markDoubtfulAdditions(backend, { ...decided, decisions })
}

/** Applies the rules that were added since the facts were extracted. */
const applyCurrentRules = ({
  policy,
  facts,
}: Pick<DecisionInput, 'policy' | 'facts'>): BatchFact[] =>
  facts.map(fact => {
    const rule = fact.isNote ? undefined : findExecRule(policy, fact.text)
    // An anti-rule is looked for in the words of the fact, not in those of the note.
    const isWithheld = matchesAntiRule(policy, fact.text)
    return { ...fact, ...(rule && { text: fallbackNote(rule) }), ...(isWithheld && { isWithheld }) }
  })

/** Adds the facts of earlier turns to the memories near each fact. */
function withEarlierFacts(facts: readonly BatchFact[], near: NearMemory[][]): NearMemory[][] {
  const earlier = earlierFacts(facts)
  return near.map((memories, index) => [...memories, ...earlier[index]!])
}

/** Counts the facts before the first turn that goes on from an earlier one. */
function countSettled(
  facts: readonly BatchFact[],
  answers: readonly (readonly ComparisonAnswer[])[],
): number {
  const changedBy = new Map<string, Said>()
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

/**
 * Replaces each answer that would change a memory when the question also showed texts that readers of the
 * memory may not see: such a text could get into the new wording, for example as an instruction to the
 * model. These facts are asked about again without those texts, those with the same readers in one call. A
 * wording that has all of its words from the fact and the memory is taken as it is.
 */
async function recheckUpdates(
  ask: AskModel,
  { facts, near, ...about }: ComparisonInput,
  { answers, memories }: { answers: readonly ComparisonAnswer[][]; memories: NearMemory[] },
  signal: AbortSignal,
): Promise<ComparisonAnswer[][]> {
  const shown = [...memories, ...facts.map(fact => ({ tags: currentTags(about.policy, fact) }))]
  const revised = facts.map((_, index) => [...answers[index]!])
  const doubted = revised.flatMap((list, index) =>
    list.flatMap((answer, at) => {
      const changed = near[index]!.find(isNamedBy(answer))
      if (answer.action !== 'UPDATE' || !changed || isDecidedByPerson(changed)) return []
      const known = new Set([facts[index]!.text, changed.text].flatMap(wordsIn))
      const isPlain = wordsIn(answer.text).every(word => known.has(word))
      return isPlain || shown.every(isReadableBy(changed)) ? [] : [{ index, at, changed }]
    }),
  )
  const byReaders = Map.groupBy(doubted, ({ changed }) => JSON.stringify(changed.tags.toSorted()))
  for (const group of byReaders.values()) {
    const isReadable = isReadableBy(group[0]!.changed)
    const indexes = [...new Set(group.map(({ index }) => index))]
    const open = indexes.map(index => near[index]!.filter(isReadable))
    const question = { ...about, facts: indexes.map(index => facts[index]!), near: open }
    const retried = await compareFacts(ask, question, signal)
    for (const { index, at, changed } of group) {
      const again = retried[indexes.indexOf(index)]!
      const confirmed = again.find(answer => answer.mem_id === changed.id)
      const other = again.find(({ action }) => action !== 'UPDATE')
      revised[index]![at] = confirmed ?? other ?? { action: 'ADD', mem_id: null, text: '' }
    }
  }
  return revised
}

/** Whether those who may read a memory may read another text. */
const isReadableBy = ({ tags }: NearMemory) => {
  const readers = visibilityOf({ wildcard: false, allowedTags: [...tags] })
  return (text: { tags: readonly string[] }): boolean => isPermitted(readers, text.tags)
}

/** Applies the rules to every answer; each memory is changed once, as every answer was given about it as it was. */
function toDecisions(
  { policy, facts, near }: ComparisonInput,
  answers: readonly (readonly ComparisonAnswer[])[],
): Decision[] {
  const updated = new Set<string | null>()
  return facts.map((fact, index) => {
    const isRepeated = facts.findIndex(({ text }) => text === fact.text) < index
    if (isRepeated || fact.isWithheld) return toNoAction(fact)
    const [answer, ...others] = answers[index]!
    const decision = decideByRules(policy, fact, near[index]!, answer)
    if (decision.action !== 'UPDATE') return decision
    if (updated.has(decision.mem_id)) return toAddition(fact)
    updated.add(decision.mem_id)
    const also = others.flatMap(other => {
      const { action, text, mem_id, version } = decideByRules(policy, fact, near[index]!, other)
      if (action !== 'UPDATE' || updated.has(mem_id)) return []
      updated.add(mem_id)
      return [{ text, mem_id: mem_id!, version: version! }]
    })
    const ids = new Set([decision, ...also].map(({ mem_id: id }) => id))
    const changed = near[index]!.filter(({ id }) => ids.has(id))
    // Those who see the fact and none of the changed memories would not learn of it.
    const tags = currentTags(policy, fact)
    const isHeldBack = changed.every(memory => isNarrower(memory, tags))
    return {
      ...decision,
      ...(also.length > 0 && { also }),
      ...(isHeldBack && { copy: { text: fact.text, mem_id: null } }),
    }
  })
}

type DecidedFacts = Omit<DecisionInput, 'findAuthor'> & {
  author: MemberScope
  decisions: readonly Decision[]
}

/** Adds no fact that its author may not see and that a memory hidden from them says. */
async function skipHiddenDuplicates(
  backend: DecideBackend,
  { author, decisions, leader, policy, facts, storedOnly }: DecidedFacts,
  signal: AbortSignal,
): Promise<Decision[]> {
  const visibility = visibilityOf(author)
  const unseen = facts.flatMap((fact, index) => {
    const tags = currentTags(policy, fact)
    const isAdded = decisions[index]!.action === 'ADD'
    return isAdded && !isPermitted(visibility, tags) ? [{ fact: { ...fact, tags }, index }] : []
  })
  const unseenFacts = unseen.map(({ fact }) => fact)
  const hidden = await findNearbyHidden(backend, author, unseenFacts)
  // Whether two texts say the same is a question for the small model.
  const asked = { leader, policy, storedOnly, model: policy.classifyModel }
  const answers = await compareFacts(
    backend.ask,
    { ...asked, facts: unseenFacts, near: hidden },
    signal,
  )
  const known = new Map(
    unseen.flatMap(({ index }, at) => {
      const [answer] = answers[at]!
      // The wording of such an answer goes nowhere.
      const isDuplicate = answer?.action === 'NONE' && hidden[at]!.some(isNamedBy(answer))
      return isDuplicate ? [[index, answer.mem_id]] : []
    }),
  )
  return decisions.map((decision, index) =>
    known.has(index)
      ? { ...toNoAction(decision), mem_id: known.get(index)!, hidden: true }
      : decision,
  )
}

/**
 * Marks doubts about additions: one that may not be for everyone waits unseen, one that its own author may
 * not see is looked at by a person. Words that wait already are not added again, nor as the copy of an update.
 *
 * @throws Refusal `unavailable` when the memory store is out of reach.
 */
async function markDoubtfulAdditions(
  { mongo }: Pick<DecideBackend, 'mongo'>,
  { policy, facts, author, decisions }: DecidedFacts,
): Promise<Decision[]> {
  const visibility = visibilityOf(author)
  const marked: Decision[] = []
  for (const [index, decision] of decisions.entries()) {
    const { copy, ...withoutCopy } = decision
    if (decision.action !== 'ADD') {
      const isKnown = copy && (await findPending(mongo, policy, copy.text)) !== undefined
      marked.push(isKnown ? withoutCopy : decision)
      continue
    }
    const fact = facts[index]!
    const pending = decision.pending || isDoubtfullyOpen(policy, fact, decision.text)
    const unseen = !isPermitted(visibility, currentTags(policy, fact))
    const waiting = pending ? await findPending(mongo, policy, decision.text) : undefined
    marked.push(
      waiting === undefined
        ? { ...decision, ...(pending && { pending }), ...(unseen && { unseen }) }
        : { ...toNoAction(decision), mem_id: waiting },
    )
  }
  return marked
}
