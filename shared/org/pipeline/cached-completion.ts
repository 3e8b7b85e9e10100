import { createHash } from 'node:crypto'
import { Refusal } from '#shared/core/errors.ts'
import { refusal } from '#shared/core/refusal.ts'
import { mintId, idForPurpose } from '#shared/core/ids.ts'
import type { OrgPolicy } from '#shared/org/base/org-policy.postgres.ts'
import {
  findModelAnswer,
  saveModelAnswer,
  type TurnRow,
} from '#shared/org/base/org-turns.postgres.ts'
import {
  orgBillingHash,
  recordOrgUsage,
  type TokenCounts,
} from '#shared/org/base/org-usage.postgres.ts'
import { recordBill } from '#shared/billing/bill.postgres.ts'
import type { Shape } from '#shared/core/shape.ts'
import { sanitizeJson } from '#shared/core/sanitize-text.ts'
import {
  extractJson,
  type CompletionModel,
  type CompletionRequest,
} from '#shared/models/completion-model.ts'
import type { Postgres, Transaction } from '#shared/storage/postgres/connect.ts'
import type { Seal } from '#shared/core/seal.ts'
import type { Config } from '#shared/core/config.ts'
import { openProviderKeys } from '#shared/access/provider-key.ts'
import { openCompletionModel } from '#shared/models/completion.ts'
import { lacksAddress } from '#shared/core/provider-registry.ts'

export type CompletionBackend = { postgres: Postgres; seal: Seal; config: Config }

/** A prompt about a turn, and how its answer is read. */
type PassQuestion<Answer, Kept> = CompletionRequest & {
  pass: 'extract' | 'tag' | 'reconcile'
  model: string
  /** The schema with every bound. */
  shape: Shape<Answer>
  /** Returns what is stored of an answer. @throws Refusal `upstream` when the answer is unusable. */
  extractResult: (answer: Answer) => Kept
  /** Throws `AnswerMissing` in place of asking. */
  storedOnly?: boolean | undefined
}

export class AnswerMissing extends Error {}

/** What was said by whom and when. */
export type TurnAuthor = Pick<TurnRow, 'id' | 'author' | 'saidAt'>

/** Asks a model of the organization about what was said. @returns what `extractResult` makes of the answer */
export type AskModel = <Answer, Kept>(
  about: { turn: TurnAuthor; policy: OrgPolicy },
  question: PassQuestion<Answer, Kept>,
  signal: AbortSignal,
) => Promise<Kept>

/** As `cachedCompletion`. */
export const cachedCompletions =
  (backend: CompletionBackend): AskModel =>
  (about, question, signal) =>
    cachedCompletion(backend, about, question, signal)

/**
 * Asks a model of the organization about a turn. A usable answer is stored with its bill in one transaction, and
 * later runs get it without a call.
 *
 * @throws Refusal `upstream` when the model does not answer or its answer is unusable, which is not stored;
 *   `invalid` when there is no key to ask with.
 * @throws AnswerMissing with `storedOnly`.
 */
async function cachedCompletion<Answer, Kept>(
  backend: CompletionBackend,
  { turn, policy }: { turn: TurnAuthor; policy: OrgPolicy },
  {
    pass,
    model: modelName,
    shape,
    extractResult,
    storedOnly,
    ...question
  }: PassQuestion<Answer, Kept>,
  signal: AbortSignal,
): Promise<Kept> {
  // The same question whenever the work is done again; another one once policy or memory have changed.
  const promptHash = createHash('sha256').update(question.instructions).update(question.userPrompt)
  const name = `${pass} ${promptHash.digest('base64url')}`
  const cached = await findModelAnswer(backend.postgres.query, turn.id, name)
  if (cached !== undefined) return cached as Kept
  if (storedOnly) throw new AnswerMissing()

  const { model, answeringModel } = await openProcessor(backend, policy, modelName)
  const { text, isComplete, ...tokens } = await answeringModel.complete(question, signal)
  const { org, account, vault } = policy
  // The provider is paid with the account's own key, and no memory is stored: only tokens are billed.
  const recordCall = async (tx: Transaction, id: string): Promise<void> => {
    const call = { kind: `org-${pass}`, model, keyHash: orgBillingHash(org), ...tokens } as const
    await recordBill(tx, { ...call, id, account, vault, memoryTokens: 0 })
    await recordOrgUsage(tx, { org, pass, member: turn.author, model, ...tokens })
  }
  let answer: Kept
  try {
    if (!isComplete) throw unusableAnswer('it was cut off')
    answer = extractResult(parseAnswer(text, shape))
  } catch (error) {
    // Unusable answers cost tokens too, each time.
    await backend.postgres.transaction(tx => recordCall(tx, mintId()))
    throw error
  }
  const ours = await backend.postgres.transaction(async tx => {
    const stored = await saveModelAnswer(tx, turn.id, name, answer)
    if (stored) await recordCall(tx, idForPurpose(turn.id, `bill ${name}`))
    return stored
  })
  if (ours) return answer
  // Another worker was faster, or the turn is gone: then nothing that follows from this is written.
  const theirs = await findModelAnswer(backend.postgres.query, turn.id, name)
  return (theirs as Kept | undefined) ?? answer
}

/**
 * Asks a model of the organization once. The call is billed and counted as it was answered, of use or not.
 *
 * @throws Refusal as `openProcessor`; `upstream` when the model does not answer.
 * @throws UnusableAnswer for one that is cut off.
 */
export async function meteredCompletion(
  backend: CompletionBackend,
  meteredCall: { policy: OrgPolicy; pass: 'tag' | 'trial'; model: string; member: string },
  question: CompletionRequest,
  signal: AbortSignal,
): Promise<TokenCounts & { text: string; model: string }> {
  const { policy, pass, model: modelName, member } = meteredCall
  const { org, account, vault } = policy
  const { model, answeringModel } = await openProcessor(backend, policy, modelName)
  const { text, isComplete, ...tokens } = await answeringModel.complete(question, signal)
  const call = { kind: `org-${pass}`, model, keyHash: orgBillingHash(org), ...tokens } as const
  await backend.postgres.transaction(async tx => {
    await recordBill(tx, { ...call, id: mintId(), account, vault, memoryTokens: 0 })
    await recordOrgUsage(tx, { org, pass, member, model, ...tokens })
  })
  if (!isComplete) throw unusableAnswer('it was cut off')
  return { text, model, ...tokens }
}

/** @throws Refusal `upstream` for an answer that is cut off, no JSON, or not of the shape. */
export function parseAnswer<Answer>(text: string, shape: Shape<Answer>): Answer {
  const parsed = sanitizeJson(extractJson(text))
  if (parsed === undefined) throw unusableAnswer('it is no JSON, or was cut off')
  try {
    return shape.check(parsed)
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    // Without the part of the message that may repeat a member's words.
    throw unusableAnswer(
      error.message.replace(/, not .*$/s, '').replace(/unknown field .*$/s, 'unknown field'),
    )
  }
}

export class UnusableAnswer extends Refusal {
  constructor(fault: string) {
    super('upstream', `The model's answer is of no use: ${fault}`, 'It is asked again')
  }
}

export const unusableAnswer = (fault: string): UnusableAnswer => new UnusableAnswer(fault)

/**
 * Opens a model of the organization's provider with a key of its owner's account; the operator's keys do not pay
 * for it.
 *
 * @param model as the provider names it, with or without its prefix
 * @throws Refusal `invalid` when the account has no key for that provider.
 */
export async function openProcessor(
  backend: { postgres: Postgres; seal: Seal; config: Config },
  {
    account,
    provider: providerName,
    apiKey: givenKey,
  }: Pick<OrgPolicy, 'account' | 'provider'> & { apiKey?: string | undefined },
  model: string,
): Promise<{
  /** Provider-prefixed. */
  model: string
  answeringModel: CompletionModel
}> {
  const provider = backend.config.providers.get(providerName)
  if (!provider) throw new Refusal('invalid', `No such provider: ${providerName}`)
  const apiKey = givenKey ?? (await openProviderKeys(backend, account)).get(providerName) ?? ''
  if (!apiKey && !(provider.selfHosted && !lacksAddress(provider))) {
    throw refusal('invalid', 'ownerLacksProviderKey', { providerName })
  }
  const prefix = `${providerName}/`
  const name = model.startsWith(prefix) ? model.slice(prefix.length) : model
  return { model: prefix + name, answeringModel: openCompletionModel({ provider, name, apiKey }) }
}
