import { Refusal, type RefusalReason } from '#shared/core/errors.ts'

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
