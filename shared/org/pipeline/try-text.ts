import { findScopeOf } from '#shared/access/key-row.postgres.ts'
import { Refusal } from '#shared/core/errors.ts'
import { refusal } from '#shared/core/refusal.ts'
import { mintId } from '#shared/core/ids.ts'
import type { MemberScope } from '#shared/domain/member-scope.ts'
import { requireMatchWords, type InstructionsChange } from '#shared/org/admin/instructions.ts'
import { defaultQuestion, parseLabel } from '#shared/org/admin/tag.ts'
import { requireUser } from '#shared/org/admin/user.ts'
import { findOrgPolicy, type OrgPolicy } from '#shared/org/base/org-policy.postgres.ts'
import type { Decision } from '#shared/org/base/org-turns.postgres.ts'
import type { TokenCounts } from '#shared/org/base/org-usage.postgres.ts'
import { missingOrganization, type OrgRow } from '#shared/org/base/orgs.postgres.ts'
import { findPipelineGate } from '#shared/org/base/pipeline-state.postgres.ts'
import { findAntiRule } from '#shared/org/base/rule-matching.ts'
import type { TagChange } from '#shared/org/base/tags.postgres.ts'
import {
  pendingPartition,
  reviewThreshold,
  sharedByIds,
  type SharedMemory,
} from '#shared/org/memories/shared-memories.mongo.ts'
import { toAddedMemory } from '#shared/org/pipeline/apply-decisions.ts'
import { currentTags, type BatchFact } from '#shared/org/pipeline/batch-facts.ts'
import {
  meteredCompletion,
  parseAnswer,
  UnusableAnswer,
  type AskModel,
  type CompletionBackend,
  type TurnAuthor,
} from '#shared/org/pipeline/cached-completion.ts'
import { decideFacts } from '#shared/org/pipeline/decide-facts.ts'
import { isDecidedByPerson, isDoubtfullyOpen } from '#shared/org/pipeline/decision-rules.ts'
import {
  findFacts,
  isWorthAsking,
  storesNothing,
  type LeftOutFact,
} from '#shared/org/pipeline/find-facts.ts'
import type { NearestBackend } from '#shared/org/pipeline/nearest-shared.ts'
import { appliesMin, rateTags, toTaggedFact } from '#shared/org/pipeline/tag-facts.ts'
import { redactOrSkipText } from '#shared/privacy/apply-redaction.ts'

type TrialBackend = CompletionBackend & NearestBackend

/** A text to try, as one message of a user; undefined: of one who may see everything. */
export type TrialRequest = {
  text: string
  user: string | undefined
  /** A tag beside the saved ones, or in place of that of the same label. */
  tag?: (TagChange & { label: string }) | undefined
  /** In place of what is saved. */
  instructions?: InstructionsChange | undefined
}

/** Why a memory would wait for a person; see `TriedFact` of the contract. */
type ReviewReason = 'unsure' | 'unclear' | 'sensitive' | 'replaces' | 'narrower' | 'unseen'

export type TriedFact = {
  text: string
  note: boolean
  outcome: 'left_out' | 'new' | 'changes' | 'repeats' | 'outdated'
  leftOutBy: LeftOutFact['reason'] | 'repeated' | null
  /** The words of the anti-rule that leaves it out. */
  rule: string | null
  tags: string[]
  answers: { label: string; likelihood: number; applies: boolean }[]
  confidence: number | null
  pending: boolean
  review: ReviewReason[]
  /** Each with its new words, or null where it stays as it is. */
  memories: { memory: SharedMemory; newText: string | null }[]
}

export type Trial = {
  teamMemberId: string | null
  /** The text after redaction; null where the policy refuses it. */
  readAs: string | null
  /** Why no model is asked. */
  notAsked: 'redaction' | 'anti_rule' | 'instructions' | 'states_nothing' | null
  rule: string | null
  facts: TriedFact[]
  /** The calls of models, in order. */
  calls: (TokenCounts & { model: string })[]
}

/** Below the time that most proxies give a request; a trial asks three to six times. */
const deadlineMs = 55_000

/** Organizations with a trial under way in this process. */
const tried = new Set<string>()

/**
 * Runs the three passes over a text without storing anything: the decisions are the pipeline's own. Only the calls are
 * billed and counted, as `trial`, under the email of the admin.
 *
 * @throws Refusal `missing` for an unknown user; `invalid` for a text or a rule without words, and without a provider
 *   key; `conflict` while another trial runs, and once the tokens of the day are spent; `upstream` when a model does
 *   not answer, or not usably.
 */
export async function tryText(
  backend: TrialBackend,
  org: OrgRow,
  actor: string,
  request: TrialRequest,
): Promise<Trial> {
  if (request.text.trim() === '') {
    throw new Refusal('invalid', 'text holds no words', 'Send what a member might say')
  }
  const policy = await draftPolicy(backend, org, request)
  const { query } = backend.postgres
  const user = request.user === undefined ? null : await requireUser(query, org.id, request.user)
  const scope = await findScopeOf(query, org.id, user ? { user: user.id } : { roles: [] })
  if (!scope) throw missingOrganization()
  const viewer = user ? scope : { ...scope, wildcard: true }
  if ((await findPipelineGate(query, org.id))?.overBudget) {
    throw refusal('conflict', 'dayBudgetSpent')
  }
  if (tried.has(org.id)) {
    throw new Refusal('conflict', 'Another trial is under way', 'Wait for its answer')
  }
  tried.add(org.id)
  try {
    const said = {
      id: mintId(),
      author: user?.teamMemberId ?? actor,
      saidAt: new Date(backend.now()),
    }
    const input = { policy, viewer, said, text: request.text }
    const { ask, calls } = countingAsk(backend, actor)
    const outcome = await withDeadline(signal => runPasses(backend, ask, input, signal))
    return { teamMemberId: user?.teamMemberId ?? null, ...outcome, calls }
  } finally {
    tried.delete(org.id)
  }
}

/** The policy of the organization, with the drafts in place of what is saved. */
async function draftPolicy(
  { postgres }: TrialBackend,
  org: OrgRow,
  { tag, instructions = {} }: TrialRequest,
): Promise<OrgPolicy> {
  const saved = await findOrgPolicy(postgres.query, org.id)
  if (!saved) throw missingOrganization()
  const { antiRules, execRules, defaultOn = saved.defaultOn, custom = saved.custom } = instructions
  requireMatchWords(antiRules, 'instructions.anti_rules')
  requireMatchWords(execRules, 'instructions.exec_rules')
  const withNote = ({ match, note = '' }: { match: string; note?: string | undefined }) => {
    return { match, note }
  }
  const policy = {
    ...saved,
    defaultOn,
    custom,
    antiRules: antiRules?.map(withNote) ?? saved.antiRules,
    execRules: execRules?.map(withNote) ?? saved.execRules,
  }
  if (!tag) return policy
  const label = parseLabel(tag.label)
  const { question = defaultQuestion(label), examples = [], negatives = [] } = tag
  const draft = { id: mintId(), former: [], label, question, examples, negatives }
  const place = saved.tags.findIndex(one => one.label === label)
  const tags =
    place < 0
      ? [...saved.tags, draft]
      : saved.tags.with(place, { ...saved.tags[place]!, question, examples, negatives })
  return { ...policy, tags }
}

/** Asks models without keeping their answers, and lists what each call took. */
function countingAsk(
  backend: CompletionBackend,
  member: string,
): { ask: AskModel; calls: Trial['calls'] } {
  const calls: Trial['calls'] = []
  const ask: AskModel = async ({ policy }, question, signal) => {
    const { model, shape, extractResult, pass: _pass, storedOnly: _storedOnly, ...asked } = question
    const call = { policy, pass: 'trial', model, member } as const
    const { text, ...used } = await meteredCompletion(backend, call, asked, signal)
    calls.push(used)
    return extractResult(parseAnswer(text, shape))
  }
  return { ask, calls }
}

async function withDeadline<Result>(
  run: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const signal = AbortSignal.timeout(deadlineMs)
  try {
    return await run(signal)
  } catch (error) {
    if (error instanceof UnusableAnswer) {
      throw new Refusal('upstream', error.message, 'Try again, or choose another model')
    }
    if (!signal.aborted) throw error
    throw new Refusal(
      'upstream',
      `The models did not answer within ${deadlineMs / 1_000} s`,
      'Try a shorter text, or choose other models',
    )
  }
}

async function runPasses(
  backend: TrialBackend,
  ask: AskModel,
  input: { policy: OrgPolicy; viewer: MemberScope; said: TurnAuthor; text: string },
  signal: AbortSignal,
): Promise<Pick<Trial, 'readAs' | 'notAsked' | 'rule' | 'facts'>> {
  const { policy, viewer, said, text } = input
  const readAs = redactOrSkipText(policy.redaction, text) ?? null
  const nothing = { readAs, rule: null, facts: [] }
  if (readAs === null) return { ...nothing, notAsked: 'redaction' }
  const turns = [[{ role: 'user' as const, text: readAs }]]
  const antiRule = findAntiRule(policy, readAs)
  if (antiRule) return { ...nothing, notAsked: 'anti_rule', rule: antiRule.match }
  if (storesNothing(policy)) return { ...nothing, notAsked: 'instructions' }
  if (!isWorthAsking({ turns })) return { ...nothing, notAsked: 'states_nothing' }

  const leftOut: LeftOutFact[] = []
  const [found = []] = await findFacts(
    ask,
    {
      leader: said,
      policy,
      exchanges: [{ turn: { id: said.id, inheritedTags: [] }, saidAt: +said.saidAt, turns }],
      earlier: { messages: [], inheritedTags: [] },
      onLeftOut: fact => leftOut.push(fact),
    },
    signal,
  )
  const rated = found.map(fact => ({ ...fact, turn: 0 }))
  const likelihoods =
    found.length === 0 ? [] : await rateTags(ask, { turn: said, policy, facts: rated }, signal)
  const facts = found.map((fact, index): BatchFact => ({
    ...toTaggedFact(fact, policy.tags, likelihoods[index] ?? {}),
    turn: said,
    isNote: fact.note,
  }))
  const findAuthor = () => Promise.resolve(viewer)
  const question = { leader: said, policy, facts, findAuthor }
  const decisions = await decideFacts({ ...backend, ask }, question, signal)
  const named = await findNamed(backend, policy, decisions)
  const described = facts.map((fact, index) => ({
    ...describeFact({ policy, said, fact, named }, decisions[index]!),
    answers: policy.tags.map(({ id, label }) => {
      const likelihood = likelihoods[index]?.[id] ?? 0.5
      return { label, likelihood, applies: likelihood > appliesMin }
    }),
  }))
  return { readAs, rule: null, notAsked: null, facts: [...described, ...leftOut.map(toLeftOut)] }
}

const toLeftOut = ({
  text,
  reason,
  rule,
}: {
  text: string
  reason: TriedFact['leftOutBy']
  rule?: string
}): TriedFact => ({
  text,
  note: false,
  outcome: 'left_out',
  leftOutBy: reason,
  rule: rule ?? null,
  tags: [],
  answers: [],
  confidence: null,
  pending: false,
  review: [],
  memories: [],
})

/** The memories that decisions name, as they are now, those that wait for a person too. */
async function findNamed(
  { mongo }: TrialBackend,
  policy: OrgPolicy,
  decisions: readonly Decision[],
): Promise<ReadonlyMap<string, SharedMemory>> {
  const ids = decisions.flatMap(({ mem_id: id, replaces, also = [] }) => [
    ...[id, replaces].filter(one => typeof one === 'string'),
    ...also.map(one => one.mem_id),
  ])
  const rows = await sharedByIds(mongo, policy, ids, ['', pendingPartition])
  return new Map(rows.map(row => [row.id, row]))
}

type DescribedFact = {
  policy: OrgPolicy
  said: TurnAuthor
  fact: BatchFact
  named: ReadonlyMap<string, SharedMemory>
}

function describeFact(
  { policy, said, fact, named }: DescribedFact,
  decision: Decision,
): Omit<TriedFact, 'answers'> {
  const { action, text, mem_id: id, replaces, also = [], outdated } = decision
  const common = { text: fact.text, note: fact.isNote, leftOutBy: null, rule: null }
  const tags = currentTags(policy, fact)
  const withMemory = (memId: string | null | undefined, newText: string | null) => {
    const memory = memId ? named.get(memId) : undefined
    return memory ? [{ memory, newText }] : []
  }
  if (action === 'NONE') {
    if (id === null) return toLeftOut({ text: fact.text, reason: 'repeated' })
    const outcome = outdated ? 'outdated' : 'repeats'
    const memories = withMemory(id, null)
    return { ...common, outcome, tags, confidence: null, pending: false, review: [], memories }
  }
  const added = toAddedMemory({ turn: said, policy, fact }, decision)
  const changed = [
    ...(action === 'UPDATE' ? withMemory(id, text) : []),
    ...also.flatMap(one => withMemory(one.mem_id, one.text)),
    ...withMemory(replaces, text),
  ]
  return {
    ...common,
    outcome: action === 'ADD' ? 'new' : 'changes',
    tags,
    confidence: added?.confidence ?? fact.confidence,
    pending: added?.pending ?? false,
    review: reviewReasons({ policy, said, fact, named }, decision),
    memories: changed,
  }
}

/** Why what a decision adds or changes waits for a person, by the rules that made the decision. */
function reviewReasons(
  { policy, fact, named }: DescribedFact,
  { action, text, pending, unseen, replaces, copy }: Decision,
): ReviewReason[] {
  const reasons: ReviewReason[] = []
  const replaced = replaces === undefined ? undefined : named.get(replaces)
  const isContradiction = replaced !== undefined && isDecidedByPerson(replaced)
  const isOpen = isDoubtfullyOpen(policy, fact, `${fact.text}\n${text}`)
  if (fact.confidence < reviewThreshold) reasons.push('unsure')
  if (isContradiction) reasons.push('replaces')
  if (isOpen && (pending || replaces)) reasons.push(fact.unclear ? 'unclear' : 'sensitive')
  if (copy || (action === 'ADD' && pending && !isOpen && !isContradiction)) reasons.push('narrower')
  if (unseen) reasons.push('unseen')
  return reasons
}
