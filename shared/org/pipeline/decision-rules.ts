import {
  findExecRule,
  matchesAntiRule,
  matchesRule,
  noteMax,
} from '#shared/org/base/rule-matching.ts'
import type { OrgPolicy } from '#shared/org/base/org-policy.postgres.ts'
import type { Decision } from '#shared/org/base/org-turns.postgres.ts'
import { currentTags, type BatchFact } from '#shared/org/pipeline/batch-facts.ts'
import type { ComparisonAnswer } from '#shared/org/pipeline/compare-facts.ts'
import type { NearMemory } from '#shared/org/pipeline/nearest-shared.ts'
import { phrasesOf } from '#shared/search/languages/languages.ts'

/** A fact and the memory that a model's answer names. */
type JudgedFact = {
  policy: OrgPolicy
  fact: BatchFact
  tags: readonly string[]
  memory: NearMemory
  /** The wording that the answer gives the memory. */
  text: string
}

/**
 * The rules for an answer that names a memory. The first one with the answer's action that holds decides; the
 * last of each action always holds. An update never changes who may see a memory. An answer that cannot be
 * carried out becomes an addition, so that nothing is lost or overwritten.
 */
const rules: readonly {
  /** For the reader alone: nothing reads it. */
  name: string
  action: 'NONE' | 'UPDATE'
  when: (judgedFact: JudgedFact) => boolean
  decide: (judgedFact: JudgedFact) => Decision
}[] = [
  {
    name: 'a fact does not disappear into a memory that fewer may see',
    action: 'NONE',
    when: ({ memory, tags }) => isNarrower(memory, tags),
    decide: ({ fact }) => ({ ...toAddition(fact), pending: true }),
  },
  {
    name: 'the memory says the fact',
    action: 'NONE',
    when: () => true,
    decide: ({ fact, memory }) => ({ ...toNoAction(fact), mem_id: memory.id }),
  },
  {
    name: "an update said before the memory's own words is outdated",
    action: 'UPDATE',
    when: ({ fact, memory: { acquiredAt, confirmedAt = 0 } }) =>
      Math.max(acquiredAt, confirmedAt) > fact.turn.saidAt.getTime(),
    decide: ({ fact, memory }) => ({ ...toNoAction(fact), mem_id: memory.id, outdated: true }),
  },
  {
    name: 'a person decides again about words that a person decided about',
    action: 'UPDATE',
    when: ({ memory }) => isDecidedByPerson(memory),
    decide: ({ fact, memory }) => toReplacement(fact, memory),
  },
  {
    name: 'a fact with a tag that the memory has not stands by itself',
    action: 'UPDATE',
    when: ({ tags, memory }) => tags.some(tag => !memory.tags.includes(tag)),
    decide: ({ fact }) => toAddition(fact),
  },
  {
    name: 'the wording is none, or against a rule of the organization',
    action: 'UPDATE',
    when: ({ policy, text }) =>
      text === '' ||
      matchesAntiRule(policy, text) ||
      (findExecRule(policy, text) !== undefined && text.length > noteMax),
    decide: ({ fact }) => toAddition(fact),
  },
  {
    name: 'a person looks at a change that may not be for everyone',
    action: 'UPDATE',
    when: ({ policy, fact, memory, text }) =>
      memory.tags.length === 0 && isDoubtfullyOpen(policy, fact, `${fact.text}\n${text}`),
    decide: ({ fact, memory }) => toReplacement(fact, memory),
  },
  {
    name: 'the memory gets the new wording',
    action: 'UPDATE',
    when: () => true,
    decide: ({ text, memory: { id, version } }) => ({
      text,
      action: 'UPDATE',
      mem_id: id,
      version,
    }),
  },
]

/** The decision that the rules make of an answer; an addition where it names no memory near the fact. */
export function decideByRules(
  policy: OrgPolicy,
  fact: BatchFact,
  near: readonly NearMemory[],
  answer: ComparisonAnswer | undefined,
): Decision {
  const memory = near.find(isNamedBy(answer))
  if (!answer || !memory || answer.action === 'ADD') return toAddition(fact)
  const text = answer.text.replaceAll(/\s+/g, ' ').trim()
  const judgedFact = { policy, fact, tags: currentTags(policy, fact), memory, text }
  const rule = rules.find(({ action, when }) => action === answer.action && when(judgedFact))!
  return rule.decide(judgedFact)
}

export const toAddition = ({ text }: { text: string }): Decision => ({
  text,
  action: 'ADD',
  mem_id: null,
})

export const toNoAction = ({ text }: { text: string }): Decision => ({
  text,
  action: 'NONE',
  mem_id: null,
})

const toReplacement = (fact: BatchFact, { id }: NearMemory): Decision => ({
  ...toAddition(fact),
  replaces: id,
  pending: true,
})

/** Whether some who may see a fact of these tags may not see the memory. */
export const isNarrower = (memory: NearMemory, tags: readonly string[]): boolean =>
  memory.tags.some(tag => !tags.includes(tag))

/** Whether a person has reviewed or worded a memory. */
export const isDecidedByPerson = ({ reviewed, byHand = false }: NearMemory): boolean =>
  reviewed || byHand

export const isNamedBy =
  (answer: ComparisonAnswer | undefined) =>
  ({ id }: NearMemory): boolean =>
    id === answer?.mem_id

/** Words of pay, health, performance, legal matters and secrets, which a team rarely means to be open to all of it. */
const sensitiveWords = phrasesOf('sensitive').map(match => ({ match, note: '' }))

/**
 * Whether a fact without tags may not be for everyone: an answer about its tags was no clear no, or a text of it
 * has a sensitive word. A note that stands for what a rule holds back is meant to be open.
 */
export function isDoubtfullyOpen(policy: OrgPolicy, fact: BatchFact, text: string): boolean {
  if (currentTags(policy, fact).length > 0) return false
  if (fact.isNote || findExecRule(policy, text) !== undefined) return false
  return fact.unclear === true || sensitiveWords.some(rule => matchesRule(rule, text))
}
