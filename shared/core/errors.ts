/** Why a request or a job cannot be served. Statuses belong to the API: see api/edge/errors.ts. */
export type RefusalReason =
  | 'invalid'
  | 'unauthenticated'
  | 'unpaid'
  | 'forbidden'
  | 'missing'
  | 'conflict'
  | 'too-large'
  | 'unsupported'
  | 'limited'
  | 'upstream'
  | 'unavailable'

/**
 * An expected refusal. The message says what is wrong, the hint what to change. Every other error
 * is a defect of the service or an outage.
 */
export class Refusal extends Error {
  readonly reason: RefusalReason
  readonly hint: string | undefined

  /** @param cause the error that led to it, for the log */
  constructor(reason: RefusalReason, message: string, hint?: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'Refusal'
    this.reason = reason
    this.hint = hint
  }
}

/** Refuses a file of which no line can be stored. */
export class FileRefusal extends Refusal {
  /** What is wrong with its first lines. */
  readonly errors: readonly { line: number; error: string }[]

  constructor(errors: FileRefusal['errors']) {
    const hint = errors.map(({ line, error }) => `line ${line}: ${error}`).join('; ')
    super('invalid', 'No line of the file can be stored', hint)
    this.errors = errors
  }
}
