import { Refusal } from '#shared/core/errors.ts'
import { turnsOf, type Message, type Turn } from '#shared/domain/turn-content.ts'
import type { Kind } from '#shared/privacy/detectors.ts'
import { findingsIn, redacted } from '#shared/privacy/redact.ts'

/** What becomes of private data in a text that is to be remembered; null where nobody minds it. */
export type Redaction = {
  /** `redact` puts a mark in its place, `block` keeps the whole text out. */
  mode: 'redact' | 'block'
  kinds: readonly Kind[]
}

/** As it is stored: `off` decides too, where an organization differs from the account it belongs to. */
export type StoredRedaction = Omit<Redaction, 'mode'> & { mode: Redaction['mode'] | 'off' }

/** The policy that a request works under. */
export const inForce = (stored: StoredRedaction | null): Redaction | null =>
  stored === null || stored.mode === 'off' ? null : { mode: stored.mode, kinds: stored.kinds }

/**
 * A text as it may be stored under a policy.
 *
 * @param what how the refusal calls the text: `messages[2]`
 * @throws Refusal `invalid` when the policy blocks it, naming what it holds and never the words.
 */
export function screened(redaction: Redaction | null, text: string, what: string): string {
  if (!redaction) return text
  const kinds = new Set(redaction.kinds)
  if (redaction.mode === 'redact') return redacted(text, kinds)
  const found = new Set(findingsIn(text, kinds).map(({ kind }) => kind))
  if (found.size === 0) return text
  throw new Refusal('invalid', `${what} holds ${[...found].map(named).join(' and ')}`, blockedHint)
}

/** A text as it may be stored where nobody could be told of a refusal: undefined when it may not. */
export function storableText(redaction: Redaction | null, text: string): string | undefined {
  try {
    return screened(redaction, text, 'text')
  } catch (error) {
    if (isBlocked(error)) return undefined
    throw error
  }
}

/** Whether somebody was refused because of what a text holds. */
export const isBlocked = (error: unknown): error is Refusal =>
  error instanceof Refusal && error.hint === blockedHint

const blockedHint = 'The redaction policy keeps such texts out: leave it out and send the rest'

const words: Record<Kind, string> = {
  secret: 'a secret',
  card: 'a card number',
  iban: 'a bank account number',
  'national-id': 'a national id',
  email: 'an email address',
  phone: 'a phone number',
  ip: 'an IP address',
}

const named = (kind: Kind): string => `${words[kind]} (${kind})`

/**
 * The messages of a conversation with what of them may be stored, in their places.
 *
 * @throws Refusal `invalid` as `screened`, for the first that is blocked.
 */
export function screenedMessages(
  redaction: Redaction | null,
  messages: readonly Message[],
): readonly Message[] {
  if (!redaction) return messages
  return messages.flatMap((message, index) =>
    turnsOf([message]).map(turn => {
      const { text, speaker } = turn
      return messageOf({
        ...turn,
        text: screened(redaction, text, `messages[${index}]`),
        ...(speaker !== undefined && {
          speaker: screened(redaction, speaker, `messages[${index}].name`),
        }),
      })
    }),
  )
}

/** A turn that is to be stored, as a message. */
export const messageOf = ({ role, text, at, speaker, interrupted }: Turn): Message => ({
  role,
  content: text,
  ...(at !== undefined && { timestamp: at }),
  ...(speaker !== undefined && { name: speaker }),
  ...(interrupted && { interrupted }),
})

/** The turns that may be stored, where nobody could be told of the others. */
export const storableTurns = (redaction: Redaction | null, turns: readonly Turn[]): Turn[] =>
  turns.flatMap(turn => {
    const text = storableText(redaction, turn.text)
    const speaker = turn.speaker && storableText(redaction, turn.speaker)
    if (text === undefined || (turn.speaker && speaker === undefined)) return []
    return [{ ...turn, text, ...(speaker && { speaker }) }]
  })
