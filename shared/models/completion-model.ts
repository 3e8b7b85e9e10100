import type { Schema } from '#shared/core/shape.ts'
import type { ProviderAccess } from '#shared/models/model-list.ts'

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
