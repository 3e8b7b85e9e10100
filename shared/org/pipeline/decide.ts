import type { Backend } from '#shared/backend.ts'
import { recall } from '#shared/memory/recall.ts'
import { sharedByIds, type SharedMemory } from '#shared/mongo/shared-memories.ts'
import { askOnce, useless, type Asking } from '#shared/org/pipeline/ask.ts'
import { reconcileInstructions } from '#shared/org/prompts.ts'
import { isForbidden, noteMax, noteRuleOf } from '#shared/org/rules.ts'
import type { OrgPolicy } from '#shared/postgres/org-policy.ts'
import type { Decision, TaggedFact, TurnRow } from '#shared/postgres/org-turns.ts'
import { shape, type Schema } from '#shared/shape.ts'

type Deciding = Asking &
  Pick<Backend, 'mongo' | 'embedders' | 'queryVectors' | 'images' | 'nearest' | 'now'>

type About = { turn: TurnRow; policy: OrgPolicy; facts: readonly TaggedFact[] }

/** Memories a fact is compared with. */
const nearMax = 5
const textMax = 4_000

/**
 * What to do about each fact, in their order: a model is asked where there are memories near them, and
 * can name no others. Added memories have no id yet.
 *
 * @throws Refusal as `askOnce`, and `unavailable` when the memory store is out of reach.
 */
export async function decideAbout(
  backend: Deciding,
  about: About,
  signal: AbortSignal,
): Promise<Decision[]> {
  const { policy, facts } = about
  const { memories, near } = await nearestOf(backend, policy, facts)
  const answers =
    memories.length === 0 ? [] : await ask(backend, { ...about, memories, near }, signal)
  const updated = new Set<string>()
  return facts.map((fact, index) => {
    // A rule that came while the fact was on its way.
    if (isForbidden(policy, fact.text)) return nothing(fact)
    const decision = decisionOf(policy, fact, near[index]!, answers[index])
    if (decision.action !== 'UPDATE') return decision
    // The second of two would undo the first: both were written on the memory as it was.
    if (updated.has(decision.mem_id!)) return addition(fact)
    updated.add(decision.mem_id!)
    return decision
  })
}

const addition = ({ text }: TaggedFact): Decision => ({ text, action: 'ADD', mem_id: null })
const nothing = ({ text }: TaggedFact): Decision => ({ text, action: 'NONE', mem_id: null })

/**
 * What is made of the model's answer. It can only point to a memory near the fact, and an update never
 * changes who may see a memory: a fact with a tag that the memory has not stands by itself. Whatever
 * cannot be done as told becomes an addition, so that nothing is lost or overwritten.
 */
function decisionOf(
  policy: OrgPolicy,
  fact: TaggedFact,
  near: readonly SharedMemory[],
  answer: Answer | undefined,
): Decision {
  const memory = near.find(({ id }) => id === answer?.mem_id)
  if (!answer || !memory || answer.action === 'ADD') return addition(fact)
  const { id, version } = memory
  if (answer.action === 'NONE') return { text: fact.text, action: 'NONE', mem_id: id }
  const text = answer.text.replaceAll(/\s+/g, ' ').trim()
  const isOpener = currentTags(policy, fact).some(tag => !memory.tags.includes(tag))
  if (text === '' || isOpener || isForbidden(policy, text)) return addition(fact)
  if (noteRuleOf(policy, text) && text.length > noteMax) return addition(fact)
  return { text, action: 'UPDATE', mem_id: id, version }
}

/**
 * The labels that the tags of a fact have by now. One that was deleted meanwhile stays: then only roles
 * that may see everything see the memory.
 */
export function currentTags(
  { tags }: Pick<OrgPolicy, 'tags'>,
  fact: Pick<TaggedFact, 'tags' | 'tagIds'>,
): string[] {
  const labels = new Map(tags.map(({ id, label }) => [id, label]))
  return fact.tagIds.map((id, index) => labels.get(id) ?? fact.tags[index]!)
}

/** The memories near any of the facts, and for each fact those that are. */
async function nearestOf(
  backend: Deciding,
  { vault, epoch, revision }: OrgPolicy,
  facts: readonly TaggedFact[],
): Promise<{ memories: SharedMemory[]; near: SharedMemory[][] }> {
  const scope = { vault, epoch, revision }
  const found: string[][] = []
  for (const { text } of facts) {
    const question = { text, limit: nearMax, sessions: [null], embeddings: undefined }
    const anything = { tiers: undefined, importance: undefined, floor: false }
    const rows = await recall(backend, { scope, member: null }, { ...question, ...anything })
    found.push(rows.map(({ memory }) => memory.id))
  }
  const ids = [...new Set(found.flat())]
  // As they are now, with the version that a change will be held against.
  const rows = ids.length === 0 ? [] : await sharedByIds(backend.mongo, scope, ids)
  const byId = new Map(rows.map(row => [row.id, row]))
  const memories = ids.flatMap(id => byId.get(id) ?? [])
  return { memories, near: found.map(list => list.flatMap(id => byId.get(id) ?? [])) }
}

/** Of one fact; the memory is one that was shown, or null. */
type Answer = { action: Decision['action']; mem_id: string | null; text: string }

function ask(
  backend: Deciding,
  { turn, policy, facts, memories, near }: About & Awaited<ReturnType<typeof nearestOf>>,
  signal: AbortSignal,
): Promise<Answer[]> {
  const nearby = (fact: number) => near[fact]!.map(memory => nameOf(memories.indexOf(memory)))
  const material = {
    facts: facts.map(({ text }, fact) => ({ fact, text, near: nearby(fact) })),
    memories: memories.map(({ text }, index) => ({ memory: nameOf(index), text })),
  }
  return askOnce(
    backend,
    { turn, policy },
    {
      pass: 'reconcile',
      kind: 'org-reconcile',
      model: policy.extractModel,
      instructions: reconcileInstructions,
      material: JSON.stringify(material),
      schema: schemaOf({}),
      shape: answerShape,
      keep: ({ decisions }) => inOrder(decisions, facts.length, memories),
    },
    signal,
  )
}

/** @throws Refusal `upstream` unless every fact is decided about once. */
function inOrder(
  decisions: readonly Said[],
  count: number,
  memories: readonly SharedMemory[],
): Answer[] {
  const rows = new Map(decisions.map(decision => [decision.fact, decision]))
  return Array.from({ length: count }, (_, index) => {
    const said = rows.get(index)
    if (!said || decisions.length !== count) throw useless('not every fact is in it once')
    const memory = memories.find((_memory, at) => said.memory === nameOf(at))
    return { action: said.action, mem_id: memory?.id ?? null, text: said.text }
  })
}

/** Models mistake a character of a UUID; and of an id they were not shown they cannot make one up. */
const nameOf = (index: number): string => `m${index + 1}`

type Said = { fact: number; action: Decision['action']; memory: string; text: string }

const schemaOf = (text: Schema): Schema => ({
  type: 'object',
  required: ['decisions'],
  additionalProperties: false,
  properties: {
    decisions: {
      type: 'array',
      items: {
        type: 'object',
        required: ['fact', 'action', 'memory', 'text'],
        additionalProperties: false,
        properties: {
          fact: { type: 'integer' },
          action: { type: 'string', enum: ['ADD', 'UPDATE', 'NONE'] },
          memory: { type: 'string' },
          text: { type: 'string', ...text },
        },
      },
    },
  },
})

const answerShape = shape<{ decisions: Said[] }>(schemaOf({ maxLength: textMax }), {
  name: 'the answer',
})
