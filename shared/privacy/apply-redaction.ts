import { Refusal } from '#shared/core/errors.ts'
import type { Metadata } from '#shared/domain/metadata.ts'
import type { Message, Turn } from '#shared/domain/message-content.ts'
import { toReadTurns } from '#shared/domain/turn/conversation.ts'
import { defaultRedactionKinds, type RedactionKind } from '#shared/privacy/detectors.ts'
import { findPrivateData, redactText } from '#shared/privacy/redact.ts'

export type RedactionPolicy = {
  /** `redact` replaces it by a marker, `block` refuses the whole text. */
  mode: 'redact' | 'block'
  kinds: readonly RedactionKind[]
}

/** `off` is a decision too, where an organization differs from its account. */
export type StoredRedactionPolicy = Omit<RedactionPolicy, 'mode'> & {
  mode: RedactionPolicy['mode'] | 'off'
}

export const toActiveRedaction = (stored: StoredRedactionPolicy | null): RedactionPolicy | null =>
  stored === null || stored.mode === 'off' ? null : { mode: stored.mode, kinds: stored.kinds }

/**
 * Returns a text as it may be stored under a policy.
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

/** As `applyRedaction`, where no client waits for a refusal: undefined for a blocked text. */
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
 * As `applyRedaction`, for metadata. A name and its value are one text, `password: …`. A name with private data becomes
 * `redacted-card`; a second one `redacted-card-2`.
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

/** It is in no name, no marker and no private data. */
const nameEnd = ': '

function freeName(name: string, taken: Metadata): string {
  let free = name
  for (let count = 2; Object.hasOwn(taken, free); count++) free = `${name}-${count}`
  return free
}

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

/** As `applyRedaction`, for messages that were read. @throws Refusal `invalid` for the first blocked message. */
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

export const toMessage = ({ role, text, at, speaker, interrupted }: Turn): Message => ({
  role,
  content: text,
  ...(at !== undefined && { timestamp: at }),
  ...(speaker !== undefined && { name: speaker }),
  ...(interrupted && { interrupted }),
})

/** As `redactOrSkipText`, for turns: blocked ones are left out. */
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
