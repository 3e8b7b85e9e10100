import { Refusal, type RefusalReason } from '#shared/core/errors.ts'
import { withTimeout } from '#shared/core/with-timeout.ts'

type ModelFault = {
  model: string
  /** The HTTP status of the provider; undefined where it has not answered. */
  status?: number | undefined
  /** There is no way to ask the model: no key, no address, an unknown provider. */
  isUnavailable?: boolean
}

/** An embedding model has given no vectors: its provider does not answer or refuses, or cannot be asked. */
export class ModelRefusal extends Refusal {
  readonly model: string
  readonly status: number | undefined
  /**
   * Whether the same call would be refused again, until something is changed: a client error (4xx) but for
   * those that pass. Of a call with a client's text it may be that text.
   */
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

/** A text that every model takes, to find out whether one is there. */
export const plainText = 'dimension'

/**
 * A model answers with vectors of another length than before: another one answers under its name. Its vectors
 * cannot be compared with the stored ones, so nothing is found or stored with them.
 */
export class DimensionRefusal extends Refusal {
  /** The vault space of the vectors that it answers with now. */
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

/** Longest that a request waits for an embedding model in all, the model's very first call included. */
export const embeddingTimeoutMs = 7_500

/** @throws Refusal `upstream` when the work of an embedding model is not done within `ms`. */
export const withEmbeddingTimeout = <Result>(
  work: Promise<Result>,
  model: string,
  ms = embeddingTimeoutMs,
): Promise<Result> =>
  withTimeout(work, Math.max(0, ms), () => {
    throw new Refusal(
      'upstream',
      `The embedding model ${model} did not answer in time`,
      'Try again; if it lasts, the operator should check the provider and its key',
    )
  })
