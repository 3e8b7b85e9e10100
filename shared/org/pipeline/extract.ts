import { askOnce, useless, type Asking } from '#shared/org/pipeline/ask.ts'
import { extractInstructions, factsMax } from '#shared/org/pipeline/prompts.ts'
import { bareNote, isForbidden, noteRuleOf, shortNote } from '#shared/org/rules.ts'
import { spokenTurns } from '#shared/vault/ingest/member-turn.ts'
import { policyOf, type OrgPolicy } from '#shared/org/org-policy.postgres.ts'
import {
  findTurn,
  finishTurn,
  holdTurn,
  isStanding,
  writePasses,
  type Fact,
  type TurnRow,
} from '#shared/org/org-turns.postgres.ts'
import { storableText } from '#shared/privacy/redaction-policy.ts'
import { shape, type Schema } from '#shared/core/shape.ts'
import type { OrgExtractJob, SaidMessage } from '#shared/domain/job-payloads.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { Log } from '#shared/core/log.ts'

const factMax = 2_000

const schemaOf = (fact: { turn: Schema; text: Schema; confidence: Schema }): Schema => ({
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

const answerSchema = schemaOf({
  turn: { type: 'integer' },
  text: { type: 'string' },
  confidence: { type: 'number' },
})

const answerShape = shape<{ facts: Found[] }>(
  schemaOf({
    turn: { type: 'integer', minimum: 0 },
    text: { type: 'string', maxLength: factMax },
    confidence: { type: 'number', minimum: 0, maximum: 1 },
  }),
  { name: 'the answer' },
)

/** Says which turn it is from, so that the rules are held against that turn's words. */
type Found = { turn: number; text: string; note: boolean; confidence: number }

type Extracting = Asking & { queue: Queue; log: Log }

/**
 * The first pass: finds what is worth sharing in what a member said, and leaves it for the second in one
 * transaction with its job. Safe to run any number of times; a pass that has been written is not made
 * again. Nothing is found in what was cancelled or cleared meanwhile.
 *
 * @throws Refusal `upstream` when the model does not answer or its answer is of no use, `invalid` when
 *   there is no key to ask it with, `unavailable` when the database is out of reach.
 */
export async function extractFacts(
  backend: Extracting,
  job: OrgExtractJob,
  signal: AbortSignal,
): Promise<void> {
  const { postgres, queue } = backend
  const turn = await findTurn(postgres.query, job.turn)
  const policy = await policyOf(postgres.query, job.org)
  if (!turn || !policy || turn.pass1) return
  const pass1 = await whileStanding(backend, job, signal, stands =>
    factsOf(backend, { turn, policy, job }, stands),
  )
  await postgres.transaction(async tx => {
    const held = await holdTurn(tx, job.turn)
    if (!held || held.pass1) return
    if (pass1.length === 0 || !(await isStanding(tx, job))) {
      await writePasses(tx, job.turn, { pass1: [], pass2: [], pass3: [] })
      return finishTurn(tx, job.turn)
    }
    await writePasses(tx, job.turn, { pass1 })
    const { turn: id, operation, org } = job
    const data = { turn: id, org, ...(operation !== undefined && { operation }) }
    await queue.send(tx, 'org-tag', [{ id, data, priority: 0 }])
  })
}

/** How soon a call is given up whose words have been cleared: the clearing waits for it. */
const lookMs = 1_000

/** Works on what was said as long as it may be used; nothing is found in it from then on. */
async function whileStanding(
  { postgres, log }: Extracting,
  job: OrgExtractJob,
  signal: AbortSignal,
  work: (stands: AbortSignal) => Promise<Fact[]>,
): Promise<Fact[]> {
  if (!(await isStanding(postgres, job))) return []
  const fallen = new AbortController()
  const look = setInterval(() => {
    isStanding(postgres, job)
      .then(stands => void (stands || fallen.abort()))
      .catch((error: unknown) => log.warn({ err: error, turn: job.turn }, 'org-extract.blind'))
  }, lookMs)
  try {
    return await work(AbortSignal.any([signal, fallen.signal]))
  } catch (error) {
    if (!fallen.signal.aborted || signal.aborted) throw error
    return []
  } finally {
    clearInterval(look)
  }
}

async function factsOf(
  backend: Asking,
  { turn, policy, job }: { turn: TurnRow; policy: OrgPolicy; job: OrgExtractJob },
  signal: AbortSignal,
): Promise<Fact[]> {
  // What an anti-rule matches is not even shown to the model.
  const turns = spokenTurns(job.messages).filter(
    messages => !isForbidden(policy, wordsOf(messages)),
  )
  if (turns.length === 0 || keepsNothing(policy)) return []
  return askOnce(
    backend,
    { turn, policy },
    {
      pass: 'extract',
      kind: 'org-extract',
      model: policy.extractModel,
      instructions: extractInstructions(policy),
      material: materialOf(turn.author, job.saidAt, turns),
      schema: answerSchema,
      shape: answerShape,
      keep: ({ facts }) => keptFacts(policy, facts, turns),
    },
    signal,
  )
}

/** The first that there is room for, each once. */
function keptFacts(
  policy: OrgPolicy,
  found: readonly Found[],
  turns: readonly SaidMessage[][],
): Fact[] {
  const ruled = found.map(one => ({ turn: one.turn, fact: ruledOf(policy, one) }))
  const noted = new Set(ruled.flatMap(({ turn, fact }) => (fact?.note ? [turn] : [])))
  const kept = new Map<string, Fact>()
  for (const { turn, fact } of ruled) {
    const words = turns[turn]
    if (!words) throw useless('a fact is from no turn')
    // Words of the turn that no fact was taken for a note of may be in any of them.
    const rule = noted.has(turn) ? undefined : noteRuleOf(policy, wordsOf(words))
    const left = fact && rule ? { ...fact, text: bareNote(rule), note: true } : fact
    const text = left && storableText(policy.redaction, left.text)
    if (text !== undefined && !kept.has(text)) kept.set(text, { ...left!, text })
  }
  return [...kept.values()].slice(0, factsMax)
}

/** Retention that is switched off and nothing in its place. */
const keepsNothing = ({ defaultOn, custom, execRules }: OrgPolicy): boolean =>
  !defaultOn && custom.trim() === '' && execRules.length === 0

/**
 * What the rules leave of a fact, whatever the model made of it: nothing of what an anti-rule matches, a
 * short note of what an exec-rule does.
 */
function ruledOf(policy: OrgPolicy, found: Found): Fact | undefined {
  const text = found.text.replaceAll(/\s+/g, ' ').trim()
  if (text === '' || isForbidden(policy, text)) return undefined
  const { confidence } = found
  if (found.note) return { text: shortNote(text), confidence, note: true }
  const rule = noteRuleOf(policy, text)
  return rule ? { text: bareNote(rule), confidence, note: true } : { text, confidence, note: false }
}

const wordsOf = (messages: readonly SaidMessage[]): string =>
  messages.map(({ text }) => text).join('\n')

function materialOf(author: string, saidAt: number, turns: readonly SaidMessage[][]): string {
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
