import { Refusal } from '#shared/core/errors.ts'

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
