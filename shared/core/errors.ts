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

/** An expected refusal: the message says what is wrong, the hint what to change. Other errors are defects or outages. */
export class Refusal extends Error {
  readonly reason: RefusalReason
  readonly hint: string | undefined

  /** @param cause for the log */
  constructor(reason: RefusalReason, message: string, hint?: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'Refusal'
    this.reason = reason
    this.hint = hint
  }
}

/** The refusal of a file without a line that can be stored. */
export class FileRefusal extends Refusal {
  /** The errors of its first lines. */
  readonly errors: readonly { line: number; error: string }[]

  constructor(errors: FileRefusal['errors']) {
    const hint = errors.map(({ line, error }) => `line ${line}: ${error}`).join('; ')
    super('invalid', 'No line of the file can be stored', hint)
    this.errors = errors
  }
}
