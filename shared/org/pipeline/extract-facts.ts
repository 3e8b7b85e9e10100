import {
  cachedCompletion,
  unusableAnswer,
  type CompletionBackend,
} from '#shared/org/pipeline/cached-completion.ts'
import { extractInstructions, factsMax } from '#shared/org/pipeline/prompts.ts'
import {
  fallbackNote,
  matchesAntiRule,
  findExecRule,
  truncateNote,
} from '#shared/org/rule-matching.ts'
import { groupIntoTurns } from '#shared/vault/ingest/turn-extraction.ts'
import { findOrgPolicy, type OrgPolicy } from '#shared/org/org-policy.postgres.ts'
import {
  findTurn,
  finishTurn,
  lockTurn,
  isStillValid,
  savePassResults,
  type Fact,
  type TurnRow,
} from '#shared/org/org-turns.postgres.ts'
import { redactOrSkipText } from '#shared/privacy/apply-redaction.ts'
import { shape, type Schema } from '#shared/core/shape.ts'
import type { OrgExtractJob, TurnMessage } from '#shared/domain/job-payloads.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { Log } from '#shared/core/log.ts'

const factLengthMax = 2_000

const factsSchema = (fact: { turn: Schema; text: Schema; confidence: Schema }): Schema => ({
  type: 'object',
  required: ['facts'],
  additionalProperties: false,
  properties: {
    facts: {
      type: 'array',
      items: {
        type: 'object',
        required: ['turn', 'text', 'note', 'confidence'],
        additionalProperties: false,
        properties: { ...fact, note: { type: 'boolean' } },
      },
    },
  },
})

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

/** The turn it is from: the rules are checked against the text of that turn. */
type ExtractedFact = { turn: number; text: string; note: boolean; confidence: number }

type ExtractBackend = CompletionBackend & { queue: Queue; log: Log }

/**
 * The first pass: extracts what is worth sharing from a member's turn and stores it, in one transaction
 * with the job of the second pass. Safe to run any number of times; a stored result is not made again. A
 * turn that was cancelled or cleared yields nothing.
 *
 * @throws Refusal `upstream` when the model does not answer or its answer is of no use, `invalid` when
 *   there is no key to ask it with, `unavailable` when the database is out of reach.
 */
export async function extractFacts(
  backend: ExtractBackend,
  job: OrgExtractJob,
  signal: AbortSignal,
): Promise<void> {
  const { postgres, queue } = backend
  const turn = await findTurn(postgres.query, job.turn)
  const policy = await findOrgPolicy(postgres.query, job.org)
  if (!turn || !policy || turn.pass1) return
  const pass1 = await whileStillValid(backend, job, signal, validSignal =>
    findFacts(backend, { turn, policy, job }, validSignal),
  )
  await postgres.transaction(async tx => {
    const turn = await lockTurn(tx, job.turn)
    if (!turn || turn.pass1) return
    if (pass1.length === 0 || !(await isStillValid(tx, job))) {
      await savePassResults(tx, job.turn, { pass1: [], pass2: [], pass3: [] })
      return finishTurn(tx, job.turn)
    }
    await savePassResults(tx, job.turn, { pass1 })
    const { turn: id, operation, org } = job
    const data = { turn: id, org, ...(operation !== undefined && { operation }) }
    await queue.send(tx, 'org-tag', [{ id, data, priority: 0 }])
  })
}

/** How often a call checks whether its turn was cleared: the clearing waits for its end. */
const recheckMs = 1_000

/** Runs `work` until the turn is cancelled or cleared; then the result is empty. */
async function whileStillValid(
  { postgres, log }: ExtractBackend,
  job: OrgExtractJob,
  signal: AbortSignal,
  work: (stillValid: AbortSignal) => Promise<Fact[]>,
): Promise<Fact[]> {
  if (!(await isStillValid(postgres, job))) return []
  const invalidated = new AbortController()
  const timer = setInterval(() => {
    isStillValid(postgres, job)
      .then(stillValid => void (stillValid || invalidated.abort()))
      .catch((error: unknown) => log.warn({ err: error, turn: job.turn }, 'org-extract.blind'))
  }, recheckMs)
  try {
    return await work(AbortSignal.any([signal, invalidated.signal]))
  } catch (error) {
    if (!invalidated.signal.aborted || signal.aborted) throw error
    return []
  } finally {
    clearInterval(timer)
  }
}

async function findFacts(
  backend: CompletionBackend,
  { turn, policy, job }: { turn: TurnRow; policy: OrgPolicy; job: OrgExtractJob },
  signal: AbortSignal,
): Promise<Fact[]> {
  // What an anti-rule matches is not even shown to the model.
  const turns = groupIntoTurns(job.messages).filter(
    messages => !matchesAntiRule(policy, joinTexts(messages)),
  )
  if (turns.length === 0 || storesNothing(policy)) return []
  return cachedCompletion(
    backend,
    { turn, policy },
    {
      pass: 'extract',
      kind: 'org-extract',
      model: policy.extractModel,
      instructions: extractInstructions(policy),
      userPrompt: buildUserPrompt(turn.author, job.saidAt, turns),
      schema: answerSchema,
      shape: answerShape,
      extractResult: ({ facts }) => filterFacts(policy, facts, turns),
    },
    signal,
  )
}

/** The first that there is room for, each once. */
function filterFacts(
  policy: OrgPolicy,
  found: readonly ExtractedFact[],
  turns: readonly TurnMessage[][],
): Fact[] {
  const candidates = found.map(one => ({ turn: one.turn, fact: applyRules(policy, one) }))
  const noted = new Set(candidates.flatMap(({ turn, fact }) => (fact?.note ? [turn] : [])))
  const kept = new Map<string, Fact>()
  for (const { turn, fact } of candidates) {
    const words = turns[turn]
    if (!words) throw unusableAnswer('a fact is from no turn')
    // Words of the turn that no fact was taken for a note of may be in any of them.
    const rule = noted.has(turn) ? undefined : findExecRule(policy, joinTexts(words))
    const finalFact = fact && rule ? { ...fact, text: fallbackNote(rule), note: true } : fact
    const text = finalFact && redactOrSkipText(policy.redaction, finalFact.text)
    if (text !== undefined && !kept.has(text)) kept.set(text, { ...finalFact!, text })
  }
  return [...kept.values()].slice(0, factsMax)
}

/** The base instructions are off and the organization has none of its own. */
const storesNothing = ({ defaultOn, custom, execRules }: OrgPolicy): boolean =>
  !defaultOn && custom.trim() === '' && execRules.length === 0

/**
 * Applies the rules to a fact, whatever the model made of it: drops what an anti-rule matches, shortens
 * what an exec-rule matches to a note.
 */
function applyRules(policy: OrgPolicy, found: ExtractedFact): Fact | undefined {
  const text = found.text.replaceAll(/\s+/g, ' ').trim()
  if (text === '' || matchesAntiRule(policy, text)) return undefined
  const { confidence } = found
  if (found.note) return { text: truncateNote(text), confidence, note: true }
  const rule = findExecRule(policy, text)
  return rule
    ? { text: fallbackNote(rule), confidence, note: true }
    : { text, confidence, note: false }
}

const joinTexts = (messages: readonly TurnMessage[]): string =>
  messages.map(({ text }) => text).join('\n')

function buildUserPrompt(author: string, saidAt: number, turns: readonly TurnMessage[][]): string {
  return JSON.stringify({
    member: author,
    said_on: new Date(saidAt).toISOString().slice(0, 10),
    turns: turns.map((messages, turn) => ({
      turn,
      messages: messages.map(({ role, text, speaker }) => ({
        from: role === 'user' ? (speaker ?? 'member') : 'model',
        text,
      })),
    })),
  })
}
