import type { Schema } from '#shared/core/shape.ts'
import type { ProviderAccess } from '#shared/models/model-catalog.ts'
import { Refusal } from '#shared/core/errors.ts'

export type CompletionRequest = {
  /** Our own text and the operator's. */
  instructions: string
  /** Text of users. */
  userPrompt: string
  /** Characters at the start of `userPrompt` that further calls repeat: providers may cache them. */
  prefixLength?: number
  /** What the prompt is about, in base64: PNG, JPEG, GIF or WebP. */
  picture?: { mediaType: string; base64: string }
  /**
   * The answer's schema, with only what every provider can enforce: objects whose fields are all required, lists, `enum`,
   * and descriptions; the caller checks bounds.
   */
  schema: Schema
}

type Completion = {
  /** JSON when the model complied; it may be wrapped in prose. */
  text: string
  /** False when the answer was cut off at a limit, or withheld. */
  isComplete: boolean
  /** As the provider counts them; 0 where it reports none. */
  inputTokens: number
  /** Input tokens from the provider's cache. */
  cachedTokens: number
  outputTokens: number
}

export type CompletionModel = {
  /** @throws Refusal `upstream` when the provider refuses, or does not answer for two minutes after the SDK's one retry. */
  complete(question: CompletionRequest, signal: AbortSignal): Promise<Completion>
}

/** `name` is the provider's name of the model. */
export type CompletionModelSettings = ProviderAccess & { name: string }

export const completionRetryPolicy = { timeoutMs: 120_000, retries: 1 } as const

/** It is ten times the longest list of facts and tags. */
export const completionTokensMax = 16_000

/** A provider's failure; `status` is undefined where no answer came. */
export class ProviderRefusal extends Refusal {
  readonly status: number | undefined

  constructor(message: string, hint: string, status: number | undefined) {
    super('upstream', message, hint)
    this.status = status
  }
}

/** Reads JSON from an answer: plain, in a fence, or with prose around it; undefined without whole JSON. */
export function extractJson(text: string): unknown {
  const [, inFence, afterFence] = text.split('```', 3)
  const fenced = afterFence === undefined ? undefined : inFence?.replace(/^json/, '').trim()
  const braced = text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1)
  for (const candidate of [text, fenced, braced]) {
    if (candidate === undefined) continue
    try {
      const value: unknown = JSON.parse(candidate)
      if (typeof value === 'object' && value !== null) return value
    } catch {
      // The next reading may do.
    }
  }
  return undefined
}

/** For prompts that are too long or against the provider's rules. */
const promptStatuses = new Set<number | undefined>([400, 413, 422])

/** Whether a provider refused a prompt for its content, by the status. */
export const isAboutPrompt = (error: unknown): boolean =>
  error instanceof ProviderRefusal && promptStatuses.has(error.status)

/** Leaves out the provider's own message, which may repeat the input. */
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
