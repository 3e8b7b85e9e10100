import { Refusal, type RefusalReason } from '#shared/core/errors.ts'

// Refusals that are given in more than one place. One of a single place stands there.

/** @param cause for the log */
export const unavailable = (message: string, cause?: unknown): Refusal =>
  new Refusal('unavailable', message, 'Try again in a few seconds', cause)

/** @param cause for the log */
export const memoryStoreUnreachable = (cause?: unknown): Refusal =>
  unavailable('The memory store is out of reach', cause)

/** While expired memories could not be removed, nothing is read. */
export const expiredRemain = (): Refusal =>
  unavailable('Memories that are over are still being removed')

export const releaseStepMissing = (message: string): Refusal =>
  new Refusal('unavailable', message, 'Run the release step first: npm run migrate')

export const noSuchKey = (hint = 'GET /v1/keys lists those of the account'): Refusal =>
  new Refusal('missing', 'No such key', hint)

export const noSuchAccount = (): Refusal => new Refusal('missing', 'There is no such account')

export const noSuchMemory = (hint: string): Refusal =>
  new Refusal('missing', 'No such memory', hint)

/** @param names of the providers that there are */
export const unknownProvider = (
  reason: RefusalReason,
  message: string,
  names: Iterable<string>,
): Refusal => new Refusal(reason, message, `Providers: ${[...names].join(', ')}`)

export const memoryContended = (): Refusal =>
  new Refusal('conflict', 'Other requests keep changing this memory', 'Try again')

export const answerNotKept = (hint: string): Refusal =>
  new Refusal(
    'conflict',
    'The request with this Idempotency-Key has been answered, and the answer cannot be given again',
    hint,
  )

export const idempotencyKeyNotTaken = (where: string): Refusal =>
  new Refusal(
    'invalid',
    `Idempotency-Key is not taken ${where}`,
    'Leave it out; sent again, the provider is asked again',
  )

export const invalidJson = (): Refusal =>
  new Refusal('invalid', 'The body is not valid JSON', 'Check quotes, commas and encoding')

export const notJsonObject = (): Refusal => new Refusal('invalid', 'The body must be a JSON object')

export const nestedTooDeep = (levels: number): Refusal =>
  new Refusal('invalid', `The body nests deeper than ${levels} levels`)

export const unsupportedContentType = (hint: string): Refusal =>
  new Refusal('unsupported', 'This Content-Type is not supported', hint)

export const unknownField = (field: string, hint?: string): Refusal =>
  new Refusal('invalid', `unknown field ${field}`, hint)

export const tooManyFields = (message: string): Refusal =>
  new Refusal('invalid', message, 'Send fewer fields')

export const emptyText = (): Refusal => new Refusal('invalid', 'text holds no words')

/** @param start and `end` are the names of the two fields */
export const reversedSpan = (start: string, end: string, hint: string): Refusal =>
  new Refusal('invalid', `${start} lies after ${end}`, hint)

export const expiryPassed = (hint?: string): Refusal =>
  new Refusal('invalid', 'expires_at must lie in the future', hint)
