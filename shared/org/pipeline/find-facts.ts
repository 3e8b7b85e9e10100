import { shape, type Schema } from '#shared/core/shape.ts'
import type { TurnMessage } from '#shared/domain/job-payloads.ts'
import type { OrgPolicy } from '#shared/org/base/org-policy.postgres.ts'
import type { Fact, TurnRow } from '#shared/org/base/org-turns.postgres.ts'
import {
  fallbackNote,
  findAntiRule,
  findExecRule,
  joinTexts,
  truncateNote,
} from '#shared/org/base/rule-matching.ts'
import {
  unusableAnswer,
  type AskModel,
  type TurnAuthor,
} from '#shared/org/pipeline/cached-completion.ts'
import { dayOf, extractInstructions, factsMax, rowsSchema } from '#shared/org/pipeline/prompts.ts'
import { wordsIn } from '#shared/org/pipeline/text-words.ts'
import { isGeneralQuestion, isPhatic } from '#shared/org/pipeline/worth-asking.ts'
import { redactOrSkipText } from '#shared/privacy/apply-redaction.ts'

const factLengthMax = 2_000

const factsSchema = (fact: { turn: Schema; text: Schema; confidence: Schema }): Schema =>
  rowsSchema('facts', { ...fact, note: { type: 'boolean' } })

const answerSchema = factsSchema({
  turn: { type: 'integer' },
  text: { type: 'string' },
  confidence: { type: 'number' },
})

const answerShape = shape<{ facts: ExtractedFact[] }>(
  factsSchema({
    turn: { type: 'integer', minimum: 0 },
    text: { type: 'string', maxLength: factLengthMax },
    confidence: { type: 'number', minimum: 0, maximum: 1 },
  }),
  { name: 'the answer' },
)

/** A fact with the number of its turn in the prompt. */
type ExtractedFact = { turn: number; text: string; note: boolean; confidence: number }

/** The messages before an exchange in its session. */
export type EarlierWords = {
  /** Oldest first. */
  messages: TurnMessage[]
  /** Tags of the shared memories in the prompts of that time. */
  inheritedTags: string[]
}

/** One exchange of a batch, with the part of its words that may be shown to a model. */
type ExchangeWords = {
  turn: Pick<TurnRow, 'id' | 'inheritedTags'>
  /** Epoch milliseconds. */
  saidAt: number
  turns: TurnMessage[][]
}

type BatchWords = {
  /** The turn that the answer is stored under. */
  leader: TurnAuthor
  policy: OrgPolicy
  /** In the order they were said, of one member and one session. */
  exchanges: readonly ExchangeWords[]
  earlier: EarlierWords
  /** Called for each fact that was found and is left out, before anything is stored. */
  onLeftOut?: ((fact: LeftOutFact) => void) | undefined
}

/** A fact that a model found and that is not kept. */
export type LeftOutFact = {
  text: string
  reason: 'unsure' | 'anti_rule' | 'redaction'
  /** The words of the rule. */
  rule?: string
}

/** Asks a model for the facts of each exchange, in order. Exchanges that state nothing are not shown to it. */
export async function findFacts(
  ask: AskModel,
  { leader, policy, exchanges, earlier, onLeftOut }: BatchWords,
  signal: AbortSignal,
): Promise<Fact[][]> {
  const asked = storesNothing(policy) ? [] : exchanges.filter(isWorthAsking)
  if (asked.length === 0) return exchanges.map(() => [])
  const found = await ask(
    { turn: leader, policy },
    {
      pass: 'extract',
      model: policy.extractModel,
      instructions: extractInstructions(policy),
      userPrompt: buildUserPrompt(leader.author, asked, earlier),
      schema: answerSchema,
      shape: answerShape,
      extractResult: ({ facts }) => factsByExchange({ policy, earlier, onLeftOut }, facts, asked),
    },
    signal,
  )
  const facts = new Map(asked.map(({ turn }, index) => [turn.id, found[index]!]))
  return exchanges.map(({ turn }) => facts.get(turn.id) ?? [])
}

/** Whether the member states something that a model may find facts in. */
export const isWorthAsking = ({ turns }: Pick<ExchangeWords, 'turns'>): boolean =>
  turns
    .flat()
    .some(({ role, text }) => role === 'user' && !isPhatic(text) && !isGeneralQuestion(text))

/** Whether the base instructions are off and the organization has none of its own. */
export const storesNothing = ({ defaultOn, custom, execRules }: OrgPolicy): boolean =>
  !defaultOn && custom.trim() === '' && execRules.length === 0

/** @throws Refusal `upstream` for a fact of a turn that was not shown. */
function factsByExchange(
  { earlier, ...rules }: FactRules & Pick<BatchWords, 'earlier'>,
  found: readonly ExtractedFact[],
  exchanges: readonly ExchangeWords[],
): Fact[][] {
  const count = exchanges.reduce((sum, { turns }) => sum + turns.length, 0)
  if (found.some(({ turn }) => turn >= count)) throw unusableAnswer('a fact is from no turn')
  let end = 0
  return exchanges.map(exchange => {
    const start = end
    end += exchange.turns.length
    const own = found.flatMap(fact =>
      fact.turn >= start && fact.turn < end ? [{ ...fact, turn: fact.turn - start }] : [],
    )
    return filterFacts(rules, own, exchange.turns).map(fact => {
      const inheritedTags = inheritedTagsOf(fact.text, exchange, earlier)
      return inheritedTags.length > 0 ? { ...fact, inheritedTags } : fact
    })
  })
}

/**
 * The tags that a fact has at least: those of the shared memories that the model had in its prompt. A fact in
 * the member's own words has none of them. A word that only the model used is not the member's.
 */
function inheritedTagsOf(
  fact: string,
  { turn, turns }: Pick<ExchangeWords, 'turn' | 'turns'>,
  earlier: EarlierWords,
): string[] {
  const tags = new Set([...turn.inheritedTags, ...earlier.inheritedTags])
  if (tags.size === 0) return []
  const messages = [...earlier.messages, ...turns.flat()]
  const ofMember = tellingWords(messages.filter(({ role }) => role === 'user'))
  const ofModel = tellingWords(messages.filter(({ role }) => role !== 'user'))
  const words = [...tellingWords([{ text: fact }])]
  const own = words.filter(word => ofMember.has(word))
  const isOwn =
    own.length * 2 >= words.length && words.every(word => ofMember.has(word) || !ofModel.has(word))
  return isOwn ? [] : [...tags].toSorted()
}

/** Shorter words without a digit do not tell whose they are. */
const wordLengthMin = 4

const tellingWords = (messages: readonly { text: string }[]): Set<string> =>
  new Set(
    messages
      .flatMap(({ text }) => wordsIn(text))
      .filter(word => word.length >= wordLengthMin || /\p{N}|\P{ASCII}/u.test(word)),
  )

type FactRules = Pick<BatchWords, 'policy' | 'onLeftOut'>

const unsure = { reason: 'unsure' } as const

/** Applies the rules to the facts of an exchange; returns each once, at most `factsMax`. */
function filterFacts(
  { policy, onLeftOut }: FactRules,
  found: readonly ExtractedFact[],
  turns: readonly TurnMessage[][],
): Fact[] {
  const candidates = found.map(one => ({
    turn: one.turn,
    fact: applyRules({ policy, onLeftOut }, one),
  }))
  const turnsWithNote = new Set(candidates.flatMap(({ turn, fact }) => (fact?.note ? [turn] : [])))
  const factsByText = new Map<string, Fact>()
  for (const { turn, fact } of candidates) {
    // Words of the turn that no fact was taken for a note of may be in any of them.
    const rule = turnsWithNote.has(turn) ? undefined : findExecRule(policy, joinTexts(turns[turn]!))
    const finalFact = fact && rule ? { ...fact, text: fallbackNote(rule), note: true } : fact
    const text = finalFact && redactOrSkipText(policy.redaction, finalFact.text)
    if (finalFact && text === undefined) onLeftOut?.({ text: finalFact.text, reason: 'redaction' })
    if (text !== undefined && !factsByText.has(text)) factsByText.set(text, { ...finalFact!, text })
  }
  return [...factsByText.values()].slice(0, factsMax)
}

/** Facts below are dropped: the extractor finds them unlikely to be meant or worth sharing. */
const confidenceMin = 0.2

/** Drops a fact that an anti-rule matches; shortens one that an exec-rule matches to a note. */
function applyRules({ policy, onLeftOut }: FactRules, found: ExtractedFact): Fact | undefined {
  const text = found.text.replaceAll(/\s+/g, ' ').trim()
  const { confidence } = found
  if (text === '') return undefined
  const antiRule = findAntiRule(policy, text)
  if (antiRule || confidence < confidenceMin) {
    onLeftOut?.({ text, ...(antiRule ? { reason: 'anti_rule', rule: antiRule.match } : unsure) })
    return undefined
  }
  if (found.note) return { text: truncateNote(text), confidence, note: true }
  const rule = findExecRule(policy, text)
  return { text: rule ? fallbackNote(rule) : text, confidence, note: rule !== undefined }
}

function buildUserPrompt(
  author: string,
  exchanges: readonly ExchangeWords[],
  earlier: EarlierWords,
): string {
  const lastDay = dayOf(exchanges.at(-1)!.saidAt)
  const turns = exchanges.flatMap(({ saidAt, turns: own }) =>
    own.map(messages => ({
      ...(dayOf(saidAt) !== lastDay && { said_on: dayOf(saidAt) }),
      messages: messages.map(toPromptMessage),
    })),
  )
  return JSON.stringify({
    member: author,
    said_on: lastDay,
    ...(earlier.messages.length > 0 && { before: earlier.messages.map(toPromptMessage) }),
    turns: turns.map((turn, number) => ({ turn: number, ...turn })),
  })
}

const toPromptMessage = ({ role, text, speaker }: TurnMessage) => ({
  from: role === 'user' ? (speaker ?? 'member') : 'model',
  text,
})
