import { Refusal } from '#shared/core/errors.ts'
import type { Metadata } from '#shared/domain/metadata.ts'
import type { Message, Turn } from '#shared/domain/message-content.ts'
import { toReadTurns } from '#shared/domain/turn/conversation.ts'
import { defaultRedactionKinds, type RedactionKind } from '#shared/privacy/detectors.ts'
import { findPrivateData, redactText } from '#shared/privacy/redact.ts'

/** How private data in a text to be stored is handled; null: it is stored. */
export type RedactionPolicy = {
  /** `redact` replaces it by a marker, `block` refuses the whole text. */
  mode: 'redact' | 'block'
  kinds: readonly RedactionKind[]
}

/** As it is stored: `off` is a decision too, when an organization differs from its account. */
export type StoredRedactionPolicy = Omit<RedactionPolicy, 'mode'> & {
  mode: RedactionPolicy['mode'] | 'off'
}

/** The policy of a request. */
export const toActiveRedaction = (stored: StoredRedactionPolicy | null): RedactionPolicy | null =>
  stored === null || stored.mode === 'off' ? null : { mode: stored.mode, kinds: stored.kinds }

/**
 * A text as it may be stored under a policy.
 *
 * @param fieldName how the refusal names the text: `messages[2]`
 * @throws Refusal `invalid` when the policy blocks it; it names the kinds and never the words.
 */
export function applyRedaction(
  redaction: RedactionPolicy | null,
  text: string,
  fieldName: string,
): string {
  if (!redaction) return text
  const kinds = new Set(redaction.kinds)
  if (redaction.mode === 'redact') return redactText(text, kinds)
  const foundKinds = new Set(findPrivateData(text, kinds).map(({ kind }) => kind))
  if (foundKinds.size === 0) return text
  throw new Refusal(
    'invalid',
    `${fieldName} holds ${[...foundKinds].map(describeKind).join(' and ')}`,
    blockedHint,
  )
}

/** A text as it may be stored where no client waits for a refusal: undefined when it may not. */
export function redactOrSkipText(
  redaction: RedactionPolicy | null,
  text: string,
): string | undefined {
  try {
    return applyRedaction(redaction, text, 'text')
  } catch (error) {
    if (isBlockedByRedaction(error)) return undefined
    throw error
  }
}

/**
 * Metadata as it may be stored. A name and its value are read as one text, `password: …`, and a number as it is
 * written. A name with private data becomes `redacted-card`; a second one `redacted-card-2`.
 *
 * @throws Refusal `invalid` as `applyRedaction`.
 */
export function redactMetadata(
  redaction: RedactionPolicy | null,
  metadata: Metadata | undefined,
): Metadata | undefined {
  if (!redaction || !metadata) return metadata
  const redacted: Record<string, Metadata[string]> = {}
  for (const [key, value] of Object.entries(metadata)) {
    const shownName = redactText(key, new Set(redaction.kinds))
      .replaceAll(/[[\]]/g, '')
      .replace(':', '-')
    const field = `${key}${nameEnd}${value}`
    const text = applyRedaction(redaction, field, `metadata.${shownName}`)
    const name = shownName === key ? key : freeName(shownName, { ...metadata, ...redacted })
    redacted[name] = text.endsWith(field.slice(key.length))
      ? value
      : text.slice(text.indexOf(nameEnd) + nameEnd.length)
  }
  return redacted
}

/** It is in no name of a field and in no marker, and no private data has it inside. */
const nameEnd = ': '

function freeName(name: string, taken: Metadata): string {
  let free = name
  for (let count = 2; Object.hasOwn(taken, free); count++) free = `${name}-${count}`
  return free
}

/** Whether an error is the refusal of a text for its private data. */
export const isBlockedByRedaction = (error: unknown): error is Refusal =>
  error instanceof Refusal && error.hint === blockedHint

const blockedHint = 'The redaction policy keeps such texts out: leave it out and send the rest'

const kindLabels: Record<RedactionKind, string> = {
  secret: 'a secret',
  card: 'a card number',
  iban: 'a bank account number',
  'national-id': 'a national id',
  email: 'an email address',
  phone: 'a phone number',
  ip: 'an IP address',
}

const describeKind = (kind: RedactionKind): string => `${kindLabels[kind]} (${kind})`

/**
 * The messages of a conversation that was read as they may be stored.
 *
 * @throws Refusal `invalid` as `applyRedaction`, for the first message that is blocked.
 */
export function applyRedactionToMessages(
  redaction: RedactionPolicy | null,
  messages: readonly Message[],
): readonly Message[] {
  if (!redaction) return messages
  return messages.flatMap((message, index) =>
    toReadTurns([message]).map(turn => {
      const { text, speaker } = turn
      return toMessage({
        ...turn,
        text: applyRedaction(redaction, text, `messages[${index}]`),
        ...(speaker !== undefined && {
          speaker: applyRedaction(redaction, speaker, `messages[${index}].name`),
        }),
      })
    }),
  )
}

/** A turn to be stored, as a message. */
export const toMessage = ({ role, text, at, speaker, interrupted }: Turn): Message => ({
  role,
  content: text,
  ...(at !== undefined && { timestamp: at }),
  ...(speaker !== undefined && { name: speaker }),
  ...(interrupted && { interrupted }),
})

/** The turns that may be stored, where no client waits for a refusal; the others are left out. */
export const redactOrSkipTurns = (
  redaction: RedactionPolicy | null,
  turns: readonly Turn[],
): Turn[] =>
  turns.flatMap(turn => {
    const text = redactOrSkipText(redaction, turn.text)
    const speaker = turn.speaker && redactOrSkipText(redaction, turn.speaker)
    if (text === undefined || (turn.speaker && speaker === undefined)) return []
    return [{ ...turn, text, ...(speaker && { speaker }) }]
  })

/** A redaction decision and its origin. */
export type EffectivePolicy = {
  redaction: StoredRedactionPolicy
  decidedBy: 'default' | 'account' | 'organization'
}

export const defaultRedaction: StoredRedactionPolicy = { mode: 'off', kinds: defaultRedactionKinds }

export type RedactionInput = {
  mode: StoredRedactionPolicy['mode']
  kinds?: readonly RedactionKind[] | undefined
}

export const toStoredRedaction = ({
  mode,
  kinds = defaultRedactionKinds,
}: RedactionInput): StoredRedactionPolicy => ({ mode, kinds })
