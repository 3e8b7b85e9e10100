import { Refusal, type RefusalReason } from '#shared/core/errors.ts'
import { refusal } from '#shared/core/refusal.ts'
import { withTimeout } from '#shared/core/with-timeout.ts'

type ModelFault = {
  model: string
  /** The HTTP status of the provider; undefined where it has not answered. */
  status?: number | undefined
  /** The model cannot be asked: no key, no address, an unknown provider. */
  isUnavailable?: boolean
}

/** An embedding model without vectors: its provider refuses, does not answer, or cannot be asked. */
export class ModelRefusal extends Refusal {
  readonly model: string
  readonly status: number | undefined
  /** Whether the same call would be refused again: a client error (4xx) that does not pass, possibly for the text. */
  readonly isPermanent: boolean

  constructor(reason: RefusalReason, message: string, hint: string, fault: ModelFault) {
    super(reason, message, hint)
    const { model, status, isUnavailable = false } = fault
    this.model = model
    this.status = status
    this.isPermanent = isUnavailable || isPermanentStatus(status)
  }

  /** The message without the name of the model. */
  get words(): string {
    return this.message.replace(`The embedding model ${this.model} `, '')
  }
}

/** Timeouts, conflicts and rate limits. */
export const isPassingStatus = (status: number): boolean => [408, 409, 425, 429].includes(status)

const isPermanentStatus = (status = 0): boolean =>
  status >= 400 && status < 500 && !isPassingStatus(status)

/** A text that every model takes, for probes. */
export const plainText = 'dimension'

/** A model answers with vectors of another length than before, which cannot be compared with the stored ones. */
export class DimensionRefusal extends Refusal {
  /** The space of the new vectors. */
  readonly space: string

  constructor(model: string, known: number, answered: number, space: string) {
    super(
      'upstream',
      `The embedding model ${model} answers with vectors of ${answered} numbers now, of ${known} before`,
      'The operator should put the former model back, which needs no restart; for a model that was meant ' +
        'to change: restart, then POST /v1/memory/reembed moves each vault to its vectors',
    )
    this.space = space
  }
}

/** Longest wait of a request for an embedding model in all, the model's first call included. */
export const embeddingTimeoutMs = 7_500

/** @throws Refusal `upstream` when an embedding model has not answered within `ms`; `unavailable` for the built-in one. */
export const withEmbeddingTimeout = <Result>(
  work: Promise<Result>,
  model: string,
  ms = embeddingTimeoutMs,
): Promise<Result> =>
  withTimeout(work, Math.max(0, ms), () => {
    // The built-in one has no provider: this machine has more to do than it can.
    if (model === 'local') throw refusal('unavailable', 'serviceBusy')
    throw refusal('upstream', 'embedderLate', { model })
  })
