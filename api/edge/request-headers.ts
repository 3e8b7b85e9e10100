import type { Context } from 'koa'
import { contractDocument, fieldsOf, type Endpoint } from '#api/contract/document.ts'
import { wayHeader } from '#api/edge/log-recall.ts'
import { userHeaderName } from '#api/edge/memory-key-auth.ts'
import { ticketHeader } from '#api/edge/ticket.ts'
import { suggestName } from '#shared/core/describe-input.ts'
import { Refusal } from '#shared/core/errors.ts'
import type { InputNotes } from '#shared/core/lenient-input.ts'

/** Headers of ours by which requests say what they mean, in lower case. */
const switches = Object.keys(contractDocument.$defs.RequestHeaders!.properties as object).filter(
  name => name.startsWith('x-'),
)

/** Judged where the credential is, or of the service itself. */
const credentialHeaders = new Set([
  'x-memory-key',
  'x-memory-user',
  'x-memory-user-from',
  'x-provider-key',
  wayHeader,
  ticketHeader,
])

/** Misspelt, the vault of the key, or its core, would be opened in place of what is meant. */
const vaultHeaders = new Set([
  'x-memory-key',
  'x-memory-user',
  'x-memory-user-from',
  'x-memory-sessions',
  'x-session-id',
  'x-embedding-model',
])

/** `X-Version-ID` is as near to a session as a misspelt one. */
const comparedNames = switches.filter(name => name !== 'x-session-id')

/**
 * Judges the headers of a request that have a kind, as its fields are judged. One that the call's contract lacks is
 * - let through on model calls if a `switch` or without `X-`: Codex sends `session_id` (codex-rs/core/src/client.rs);
 * - refused by a call that changes something;
 * - refused by others too if it means a session, nearly names a vault or, unless the call only reads, is any near miss;
 * - noted otherwise.
 *
 * @throws Refusal `invalid` with the header that was probably meant.
 */
export function checkHeaders(
  { req }: Pick<Context, 'req'>,
  { effect, headers }: Pick<Endpoint, 'effect' | 'headers'>,
  notes: InputNotes,
): void {
  for (const name of Object.keys(req.headers)) {
    const kind = kindOf(name)
    if (kind === undefined || credentialHeaders.has(name) || name === userHeaderName(req.headers))
      continue
    const isInContract = headers !== undefined && fieldsOf(headers).names.includes(name)
    if (isInContract || (effect === 'forwards' && (kind === 'switch' || !name.startsWith('x-'))))
      continue
    const meant = meantBy(kind, name)
    const isNearMiss =
      kind === 'session' ||
      (kind === 'ours' && meant !== undefined && (vaultHeaders.has(meant) || effect !== 'reads'))
    if (effect === 'changes' || isNearMiss) throw unknownHeader(name, meant)
    notes.noteIgnored(name)
  }
}

/** A `switch` is of the contract, one of `ours` `x-memory-…` or a near miss; the others plainly mean a session or user. */
type Kind = 'switch' | 'ours' | 'session' | 'user'

/** What a header is about; undefined: nothing of ours. */
function kindOf(name: string): Kind | undefined {
  const known = kinds.get(name)
  if (known !== undefined) return known ?? undefined
  const letters = name.replaceAll(/[-_]/g, '')
  const kind = switches.includes(name)
    ? 'switch'
    : /^x-memory-|^x?memory-?user-?(?:id|from)?$/.test(name) || suggestName(name, comparedNames)
      ? 'ours'
      : sessionNames.test(letters) ||
          (letters.includes('ses') && suggestName(name, ['x-session-id']))
        ? 'session'
        : /^x?user(?:id)?$/.test(letters)
          ? 'user'
          : null
  if (kinds.size < kindsMax) kinds.set(name, kind)
  return kind ?? undefined
}

/** The header that was probably meant; of one that the call does not take none. */
function meantBy(kind: Kind, name: string): string | undefined {
  if (kind === 'session') return 'x-session-id'
  if (kind === 'user') return 'x-memory-user'
  return kind === 'ours' ? suggestName(name, switches) : undefined
}

/** Without hyphens: `Session`, `X-Session`, `SessionID`. */
const sessionNames = /^x?session(?:id)?$/

/** By name: the same few come with every request. */
const kinds = new Map<string, Kind | null>()
const kindsMax = 1_000

const unknownHeader = (name: string, meant: string | undefined): Refusal =>
  new Refusal(
    'invalid',
    `unknown header ${name.slice(0, 64)}`,
    meant === undefined
      ? 'This call does not take it; leave it out'
      : `did you mean ${shownName(meant)}? Or leave it out`,
  )

const shownName = (name: string): string =>
  name.replaceAll(/(?<=^|-)(?:id|ttl|[a-z])/g, part => part.toUpperCase())
