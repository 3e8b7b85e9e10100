import type { SharedMemory } from '#shared/org/shared-memories.mongo.ts'
import { audienceOf, isPermitted } from '#shared/domain/visibility.ts'
import type { Asking } from '#shared/org/pipeline/ask.ts'
import { compare, type Answer } from '#shared/org/pipeline/compare.ts'
import { nearAndHidden, nearAndSeen, type Near } from '#shared/org/pipeline/near.ts'
import { bareNote, isForbidden, noteMax, noteRuleOf } from '#shared/org/rules.ts'
import type { MemberScope } from '#shared/domain/member-scope.ts'
import { scopeOfAuthor } from '#shared/access/member-scope.postgres.ts'
import type { OrgPolicy } from '#shared/org/org-policy.postgres.ts'
import type { Decision, TaggedFact, TurnRow } from '#shared/org/org-turns.postgres.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { QueryVectors } from '#shared/search/query/query-vectors.ts'
import type { Images } from '#shared/search/index/vault-indexes.ts'
import type { Nearest } from '#shared/vault/read/nearest.ts'

type Deciding = Asking & {
  mongo: Mongo
  embedders: Embedders
  queryVectors: QueryVectors
  images: Images
  nearest: Nearest
  now: () => number
}

type About = { turn: TurnRow; policy: OrgPolicy; facts: readonly TaggedFact[] }

/**
 * What to do about each fact, in their order: a model is asked where there are memories near them, and
 * can name no others. Added memories have no id yet. What the author may not see by the roles they have
 * at this moment takes no part in it, but for one thing that they could not notice: a fact that they
 * will not see either is left out when such a memory says it already.
 *
 * @throws Refusal as `askOnce`, and `unavailable` when the memory store is out of reach.
 */
export async function decideAbout(
  backend: Deciding,
  found: About,
  signal: AbortSignal,
): Promise<Decision[]> {
  const { turn, policy } = found
  const facts = underRules(found)
  const about = { turn, policy, facts }
  const author = await scopeOfAuthor(backend.postgres.query, turn.id)
  // The turn is gone, and nothing will be written about it.
  if (!author) return facts.map(nothing)
  const seen = await nearAndSeen(backend, author, facts.map(textOf))
  const first = await compare(backend, { ...about, ...seen }, signal)
  const answers = await secondThoughts(backend, { ...about, ...seen }, first, signal)
  const updated = new Set<string>()
  const decisions = facts.map((fact, index) => {
    const isRepeated = facts.findIndex(({ text }) => text === fact.text) < index
    if (isRepeated || isForbidden(policy, found.facts[index]!.text)) return nothing(fact)
    const decision = decisionOf(about, fact, seen.near[index]!, answers[index])
    if (decision.action !== 'UPDATE') return decision
    // The second of two would undo the first: both were written on the memory as it was.
    if (updated.has(decision.mem_id!)) return addition(fact)
    updated.add(decision.mem_id!)
    return decision
  })
  return withoutHidden(backend, { ...about, author, decisions }, signal)
}

/** The facts as rules leave them that came while they were on their way. */
const underRules = ({ turn, policy, facts }: About): TaggedFact[] =>
  facts.map((fact, index) => {
    const rule = turn.pass1?.[index]?.note ? undefined : noteRuleOf(policy, fact.text)
    return rule ? { ...fact, text: bareNote(rule) } : fact
  })

/**
 * The answers, with others in the place of those that would change a memory in sight of something its
 * readers may not see: what is said there could find its way into the new words, if only because
 * somebody has worded it as an instruction to the model. Those are asked for again without it.
 */
async function secondThoughts(
  backend: Deciding,
  { facts, memories, near, ...about }: About & Near,
  answers: readonly Answer[],
  signal: AbortSignal,
): Promise<Answer[]> {
  const shown = [...memories, ...facts.map(fact => ({ tags: currentTags(about.policy, fact) }))]
  const settled = [...answers]
  for (const [index, answer] of answers.entries()) {
    const changed = near[index]!.find(isNamedBy(answer))
    if (answer.action !== 'UPDATE' || !changed || isSettled(changed)) continue
    const readers = audienceOf({ wildcard: false, allowedTags: [...changed.tags] })
    const isOpen = ({ tags }: { tags: readonly string[] }) => isPermitted(readers, tags)
    if (shown.every(isOpen)) continue
    const open = near[index]!.filter(isOpen)
    const asked = { ...about, facts: [facts[index]!], memories: open, near: [open] }
    const [again] = await compare(backend, asked, signal)
    const isOther = again?.action === 'UPDATE' && again.mem_id !== changed.id
    settled[index] = again && !isOther ? again : { action: 'ADD', mem_id: null, text: '' }
  }
  return settled
}

/** Nobody adds again what the author may not know to be there. */
async function withoutHidden(
  backend: Deciding,
  { author, decisions, ...about }: About & { author: MemberScope; decisions: Decision[] },
  signal: AbortSignal,
): Promise<Decision[]> {
  const { policy, facts } = about
  const audience = audienceOf(author)
  const unseen = facts.flatMap((fact, index) => {
    const tags = currentTags(policy, fact)
    const isAdded = decisions[index]!.action === 'ADD'
    return isAdded && !isPermitted(audience, tags) ? [{ fact: { ...fact, tags }, index }] : []
  })
  const asked = unseen.map(({ fact }) => fact)
  const hidden = await nearAndHidden(backend, author, asked)
  const answers = await compare(backend, { ...about, facts: asked, ...hidden }, signal)
  const known = new Map(
    unseen.flatMap(({ index }, at) => {
      const answer = answers[at]
      // Words of an answer about what the author may not see go nowhere.
      const isSaid = answer?.action === 'NONE' && hidden.near[at]!.some(isNamedBy(answer))
      return isSaid ? [[index, answer.mem_id]] : []
    }),
  )
  return decisions.map((decision, index) =>
    known.has(index) ? { ...nothing(decision), mem_id: known.get(index)! } : decision,
  )
}

const textOf = ({ text }: { text: string }): string => text
const addition = ({ text }: { text: string }): Decision => ({ text, action: 'ADD', mem_id: null })
const nothing = ({ text }: { text: string }): Decision => ({ text, action: 'NONE', mem_id: null })

/** A person has decided about its words. */
const isSettled = ({ reviewed, byHand = false }: SharedMemory): boolean => reviewed || byHand

const isNamedBy =
  (answer: Answer | undefined) =>
  ({ id }: SharedMemory): boolean =>
    id === answer?.mem_id

/**
 * What is made of the model's answer. It can only point to a memory near the fact, and an update never
 * changes who may see a memory: a fact with a tag that the memory has not stands by itself. Nor does it
 * replace words that a person has decided about: the fact is added beside them, for a person to decide
 * again. Nor does what was said earlier replace what was said later, though it comes after it. Whatever cannot be done as told becomes an addition, so that nothing is lost or overwritten.
 */
function decisionOf(
  { turn, policy }: Pick<About, 'turn' | 'policy'>,
  fact: TaggedFact,
  near: readonly SharedMemory[],
  answer: Answer | undefined,
): Decision {
  const memory = near.find(isNamedBy(answer))
  if (!answer || !memory || answer.action === 'ADD') return addition(fact)
  const { id, version } = memory
  if (answer.action === 'NONE') return { text: fact.text, action: 'NONE', mem_id: id }
  if (memory.acquiredAt > turn.saidAt.getTime()) return addition(fact)
  if (isSettled(memory)) return { ...addition(fact), replaces: id }
  const text = answer.text.replaceAll(/\s+/g, ' ').trim()
  const isOpener = currentTags(policy, fact).some(tag => !memory.tags.includes(tag))
  if (text === '' || isOpener || isForbidden(policy, text)) return addition(fact)
  if (noteRuleOf(policy, text) && text.length > noteMax) return addition(fact)
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
