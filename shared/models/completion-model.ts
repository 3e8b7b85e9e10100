import type { Schema } from '#shared/core/shape.ts'
import type { ProviderAccess } from '#shared/models/model-catalog.ts'
import { Refusal } from '#shared/core/errors.ts'

/** One question to a model. */
export type CompletionRequest = {
  /** The instructions: our own and the operator's text. */
  instructions: string
  /** The input: text of users. */
  userPrompt: string
  /** How many characters of the input are the same in further calls: providers may keep that prefix. */
  prefixLength?: number
  /**
   * Schema of the answer. Only what every provider can enforce: objects whose fields are all
   * required, lists, `enum`, and descriptions; the caller checks bounds.
   */
  schema: Schema
}

type Completion = {
  /** JSON when the model complied; it may be wrapped in prose or something else. */
  text: string
  /** False when the provider reports that the answer was cut off at a limit, or withheld. */
  isComplete: boolean
  /** As the provider counts them; 0 where it reports none. */
  inputTokens: number
  /** Of the input tokens, those that the provider had in a cache. */
  cachedTokens: number
  outputTokens: number
}

/** A model that answers in a given form. */
export type CompletionModel = {
  /**
   * @throws Refusal `upstream` when the provider refuses, or does not answer for two minutes after
   *   the SDK's one retry.
   */
  complete(question: CompletionRequest, signal: AbortSignal): Promise<Completion>
}

/** A model by its provider's name for it, and how that provider is reached. */
export type CompletionModelSettings = ProviderAccess & { name: string }

/** Timeout of a model call, and how often the SDK retries. */
export const completionRetryPolicy = { timeoutMs: 120_000, retries: 1 } as const

/** Longest answer, in tokens: a full list of facts and tags is a tenth of it. */
export const completionTokensMax = 16_000

/** A provider's failure; `status` is undefined where no answer came. */
export class ProviderRefusal extends Refusal {
  readonly status: number | undefined

  constructor(message: string, hint: string, status: number | undefined) {
    super('upstream', message, hint)
    this.status = status
  }
}

/** A provider refuses so what is too long or against its rules. */
const promptStatuses = new Set<number | undefined>([400, 413, 422])

/** Whether a provider refused a prompt for what is in it, as far as its status tells. */
export const isAboutPrompt = (error: unknown): boolean =>
  error instanceof ProviderRefusal && promptStatuses.has(error.status)

/**
 * A provider's failure as a Refusal, without the provider's own message: some repeat their input.
 */
export function completionRefusal(
  { provider, name }: { provider: { name: string }; name: string },
  status: number | undefined,
): ProviderRefusal {
  return new ProviderRefusal(
    `${provider.name}/${name} did not answer${status ? ` (status ${status})` : ''}`,
    hints[status ?? 0] ?? 'It is tried again; if it lasts, look at the state of the provider',
    status,
  )
}

const keyHint = 'Check the provider key of the account and what it may use'
const hints: Record<number, string> = {
  400: 'The provider takes no such request; check the name of the model',
  401: keyHint,
  403: keyHint,
  404: 'Check the name of the model',
  429: 'The provider limits its use; it is tried again later',
}
