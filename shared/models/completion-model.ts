import type { Schema } from '#shared/core/shape.ts'
import type { ProviderAccess } from '#shared/models/model-list.ts'

/** One question to a model. */
export type CompletionRequest = {
  /** What the model is to do: ours and the operator's words. */
  instructions: string
  /** What it is to do it with: words of others. */
  userPrompt: string
  /**
   * What the answer looks like. Only what every provider can be held to: objects whose fields are all
   * required, lists, `enum`, and descriptions; bounds are for whoever checks the answer.
   */
  schema: Schema
}

type Completion = {
  /** JSON if the model did as told; it may be wrapped in prose or something else. */
  text: string
  /** False where the provider says that there would be more: cut off at a limit, or held back. */
  isComplete: boolean
  /** As the provider counts them; 0 where it does not say. */
  inputTokens: number
  outputTokens: number
}

/** A model that answers in a given form. */
export type CompletionModel = {
  /**
   * @throws Refusal `upstream` when the provider refuses, or stays silent for two minutes after the SDK's
   *   one retry.
   */
  complete(question: CompletionRequest, signal: AbortSignal): Promise<Completion>
}

/** A model as its provider names it, and how that provider is reached. */
export type CompletionModelSettings = ProviderAccess & { name: string }
