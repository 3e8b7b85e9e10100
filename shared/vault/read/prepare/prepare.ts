import type { Caller } from '#shared/access/caller.ts'
import {
  absenceBlock,
  renderContextBlock,
  sortForBlock,
  type ContextMemory,
} from '#shared/domain/context-block.ts'
import {
  chooseLines,
  leaveOutWeakRest,
  toldTokens,
  asTold,
  type RecalledLine,
} from '#shared/vault/read/prepare/choose-lines.ts'
import { isAsideConversation } from '#shared/domain/turn/asides.ts'
import {
  reloadRecalled,
  type RecalledMemory,
  type RecallFilters,
  type RecallQuestion,
  recallReranked,
} from '#shared/vault/read/search/recall.ts'
import { momentOf } from '#shared/vault/read/search/as-of.ts'
import {
  readConversationQuestion,
  type ConversationQuestion,
} from '#shared/vault/read/prepare/conversation-question.ts'
import { selectQuestions, type Question } from '#shared/search/query/select-questions.ts'
import { asksMemory } from '#shared/search/query/sentence-kinds.ts'
import type { Abstention } from '#shared/search/ranking/rank-question.ts'
import { answerConfidence } from '#shared/search/ranking/signals.ts'
import { countTokensByLine } from '#shared/core/tokens.ts'
import { recordPrepared, type RetrievalTrail } from '#shared/vault/read/search/retrieval-trail.ts'
import type { Message } from '#shared/domain/message-content.ts'

/**
 * Why there is no block: the message asks nothing, no memory fits it, none is of the time that it names, those that match
 * are not likely to answer, or all that was found is in the blocks of earlier turns.
 */
export type AbstentionReason = Abstention | 'asks_nothing' | 'nothing_relevant' | 'already_told'

export type PreparedContext = {
  /** Null when nothing relevant is remembered, or the line that says so. */
  context: string | null
  memories: number
  /** Tokens of the recalled memories. */
  recalledTokens: number
  /** Tokens of the whole block, as it goes into a prompt. */
  contextTokens: number
  /** The memories of the block in the order of its lines, and the time of its ages: they give the same block. */
  ids: string[]
  lines: RecalledLine[]
  /** What its memories were ranked by, in the order of the block; empty for a rebuilt block. */
  ranking: RecalledMemory[]
  /** Tags of the shared memories in it. */
  tags: string[]
  at: number
  /** How likely the answer is in the block, 0 to 1; 0, unknown, for a rebuilt block. */
  confidence: number
  /** Null when there is a block. */
  abstained: AbstentionReason | null
  /** Memories that were found and are not in the block; 0, unknown, for a rebuilt block. */
  leftOut: number
}

/** What was found for a conversation; `renderContext` makes a block of it. */
export type FoundContext = {
  at: number
  /** A program asks for itself: nothing was looked for. */
  isAside: boolean
  /** What the last turn of the user asks. */
  question: string
  filters: RecallFilters
  asksNothing: boolean
  /** Where nothing is found the model is told so. */
  tellsAbsence: boolean
  /** Why what matches was left out, where it was. */
  abstention: Abstention | undefined
  /** How many memories. */
  limit: number
  tokensMax: number
  /** Best first. */
  found: readonly RecalledMemory[]
}

/**
 * Recalls what is relevant to the last turns of a conversation from the core and session vault and from the
 * shared memory that a member may see, and renders the block for the prompt. Texts that the conversation
 * contains are not recalled.
 *
 * @throws what `recall` throws, as the functions below.
 */
export const prepareContext = async (
  backend: Parameters<typeof recallReranked>[0] & { retrievals: RetrievalTrail },
  caller: Caller,
  preparation: PrepareRequest,
): Promise<PreparedContext> =>
  renderContext(backend, caller, await findContext(backend, caller, preparation))

/** The first step of `prepareContext`, with nearly all of its work. */
export async function findContext(
  backend: Parameters<typeof recallReranked>[0],
  caller: Caller,
  preparation: PrepareRequest,
): Promise<FoundContext> {
  const at = momentOf(backend, preparation.asOf)
  const bounds = { ...prepareBounds(preparation), filters: filtersOf(preparation) }
  const asksNothing = { asksNothing: true, tellsAbsence: false, abstention: undefined }
  const nothing = { at, ...bounds, ...asksNothing, found: [] }
  if (isAsideConversation(preparation.messages)) return { ...nothing, question: '', isAside: true }
  const asked = readConversationQuestion(preparation.messages)
  const { question } = asked
  const questions = selectQuestions(question)
  if (questions.length === 0) return { ...nothing, question, isAside: false }
  let abstention: Abstention | undefined
  const recalled = await recallForConversation(backend, caller, preparation, {
    ...asked,
    parts: questions,
    limit: bounds.limit,
    onAbstain: reason => (abstention = reason),
  })
  const found = leaveOutWeakRest(recalled, questions)
  const tellsAbsence = preparation.tellsAbsence === true && questions.some(mayBeTold)
  return {
    at,
    ...bounds,
    question,
    isAside: false,
    asksNothing: false,
    tellsAbsence,
    abstention,
    found,
  }
}

const mayBeTold = ({ kind, text }: Question): boolean =>
  (kind === 'whole' || kind === 'asking') && asksMemory(text)

/**
 * The second step of `prepareContext`: the block.
 *
 * @param excludedIds memories that the prompt holds already, in the block of an earlier turn
 */
export function renderContext(
  backend: { retrievals: RetrievalTrail },
  caller: Caller,
  prepared: FoundContext,
  excludedIds?: ReadonlySet<string>,
): PreparedContext {
  const { at, question, filters, limit, tokensMax, isAside, asksNothing, found } = prepared
  const fresh = found.filter(({ memory }) => !excludedIds?.has(memory.id))
  const lines = chooseLines(fresh, question, tokensMax)
  const asked = asksNothing ? null : { ...filters, text: question, limit }
  if (!isAside) recordPrepared(backend, caller, lines, asked)
  const rows = new Map(found.map(row => [row.memory.id, row]))
  const isAbsence = prepared.tellsAbsence && found.length === 0
  return {
    ...buildPreparedContext(lines, at, isAbsence),
    ranking: sortForBlock(lines).map(({ id }) => rows.get(id)!),
    confidence: answerConfidence(found),
    abstained: lines.length > 0 ? null : abstentionReason(prepared),
    leftOut: found.length - lines.length,
  }
}

function abstentionReason({
  asksNothing,
  abstention,
  found,
}: Pick<FoundContext, 'asksNothing' | 'abstention' | 'found'>): AbstentionReason {
  if (asksNothing) return 'asks_nothing'
  if (found.length > 0) return 'already_told'
  return abstention ?? 'nothing_relevant'
}

/**
 * Renders a block that was prepared before: the same bytes, unless one of its memories was changed or deleted
 * since.
 *
 * @param prepared of it: `isAbsence` says that it told of no memory from the beginning
 */
export async function rebuildContext(
  backend: Parameters<typeof reloadRecalled>[0] & { retrievals: RetrievalTrail },
  caller: Caller,
  {
    ids,
    lines,
    at,
    isAbsence,
  }: Pick<PreparedContext, 'ids' | 'lines' | 'at'> & { isAbsence: boolean },
  { session, embeddings }: Pick<PrepareRequest, 'session' | 'embeddings'>,
): Promise<PreparedContext> {
  const memories = await reloadRecalled(backend, caller, {
    ids,
    sessions: sessionsToRecall(session),
    embeddings,
  })
  recordPrepared(backend, caller, memories, null)
  const told = asTold(memories, lines)
  return {
    ...buildPreparedContext(told, at, isAbsence),
    ranking: [],
    confidence: 0,
    abstained: null,
    leftOut: 0,
  }
}

function buildPreparedContext(
  found: readonly ContextMemory[],
  at: number,
  isAbsence: boolean,
): Omit<PreparedContext, 'ranking' | 'confidence' | 'abstained' | 'leftOut'> {
  const memories = sortForBlock(found)
  const context = isAbsence ? absenceBlock : renderContextBlock(memories, at)
  return {
    context,
    memories: memories.length,
    recalledTokens: toldTokens(memories),
    contextTokens: context === null ? 0 : countTokensByLine(context),
    ids: memories.map(({ id }) => id),
    tags: [...new Set(memories.flatMap(({ tags = [] }) => tags))],
    lines: memories
      .filter(({ passage, isLater, isEarlier }) => passage || isLater || isEarlier)
      .map(({ id, passage, isLater, isEarlier }) => ({
        id,
        ...passage,
        ...(isLater && { later: true }),
        ...(isEarlier && { earlier: true }),
      })),
    at,
  }
}

/** A session is searched together with the core vault. */
export const sessionsToRecall = (session: string | null): (string | null)[] =>
  session === null ? [null] : [null, session]

/** Recalls for the last user turn up to the limit, then for the turns before it up to a third of the limit. */
async function recallForConversation(
  backend: Parameters<typeof recallReranked>[0],
  caller: Caller,
  preparation: PrepareRequest,
  query: ConversationQuestion & {
    parts: readonly Question[]
    limit: number
    onAbstain: (reason: Abstention) => void
  },
): Promise<RecalledMemory[]> {
  const { question, parts, background, excludedTexts, limit, onAbstain } = query
  const recallText = (
    text: string,
    max: number,
    way: Pick<RecallQuestion, 'undivided' | 'parts' | 'followedBy' | 'onAbstain'>,
  ): Promise<RecalledMemory[]> =>
    text === '' || max === 0
      ? Promise.resolve([])
      : recallReranked(backend, caller, {
          text,
          ...way,
          limit: max,
          sessions: sessionsToRecall(preparation.session),
          embeddings: preparation.embeddings,
          ...filtersOf(preparation),
          relevantOnly: true,
          excludedTexts,
        })
  let abstention: Abstention | undefined
  const direct = await recallText(question, limit, {
    parts,
    followedBy: background,
    onAbstain: reason => (abstention = reason),
  })
  if (abstention && direct.length === 0) onAbstain(abstention)
  if (abstention === 'nothing_then' && direct.length === 0) return []
  const remaining = Math.min(limit - direct.length, Math.ceil(limit / 3))
  const around = await recallText(background, remaining, { undivided: true })
  const known = new Set(direct.map(({ memory }) => memory.text))
  return [...direct, ...around.filter(({ memory }) => !known.has(memory.text))]
}

export type Density = 'low' | 'default' | 'high' | 'xhigh'

/** How many memories a density may bring. */
const densityLimits: Record<Density, number> = { low: 12, default: 30, high: 60, xhigh: 120 }

/** How many tokens a block may have by density: the second bound. */
const densityTokens: Record<Density, number> = {
  low: 700,
  default: 1_500,
  high: 3_000,
  xhigh: 6_000,
}
/** For each memory that `context_limit` asks for, where that is more than the default. */
const tokensPerMemory = 50

type PrepareRequest = RecallFilters & {
  messages: readonly Message[]
  session: string | null
  embeddings: string | undefined
  density: Density | undefined
  /** Overrides the density: 1 to 500 memories, and tokens for as many short ones. */
  limit: number | undefined
  /** Whether the model is told where nothing is found for what only memory could answer. */
  tellsAbsence?: boolean
}

/** How many memories and tokens the block may have. */
const prepareBounds = ({
  density = 'default',
  limit,
}: Pick<PrepareRequest, 'density' | 'limit'>): { limit: number; tokensMax: number } =>
  limit === undefined
    ? { limit: densityLimits[density], tokensMax: densityTokens[density] }
    : { limit, tokensMax: Math.max(densityTokens.default, limit * tokensPerMemory) }

/** The filters of a request. */
const filtersOf = ({
  tiers,
  importance,
  minScore,
  condition,
  asOf,
}: PrepareRequest): RecallFilters => ({ tiers, importance, minScore, condition, asOf })
