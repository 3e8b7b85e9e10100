import type { Context } from 'koa'
import type { KeyMode } from '#shared/access/key.ts'
import { Refusal } from '#shared/core/errors.ts'
import type { Seal } from '#shared/core/seal.ts'

/** The key by which a request acts, where it does not carry the key itself. */
export type Ticket = {
  keyHash: Buffer
  maskedKey: string
  mode: KeyMode
  /** The user of the key's account whose vault is meant; null for the vault of the key. */
  externalId: string | null
}

export const ticketHeader = 'x-memory-ticket'

/** Longer than any tool call waits. */
const lifetimeMs = 120_000

/** Binds the seal to tickets: what was sealed for another use does not open as one. */
const sealContext = 'x-memory-ticket'

/**
 * A ticket as the header in which `/mcp` sends it to the service itself: sealed, so that any process opens it and no
 * client can make one. No answer ever holds it.
 *
 * @param now epoch milliseconds
 */
export function sealTicket(
  seal: Seal,
  { keyHash, maskedKey, mode, externalId }: Ticket,
  now: number,
): string {
  const fields = [keyHash.toString('base64url'), maskedKey, mode, externalId, now + lifetimeMs]
  return seal.seal(JSON.stringify(fields), sealContext)
}

/**
 * The ticket of a request; undefined where it carries none.
 *
 * @throws Refusal `unauthenticated` for one that was not sealed here or has ended.
 */
export function openTicket(ctx: Context, seal: Seal, now: number): Ticket | undefined {
  const sealed = ctx.get(ticketHeader)
  if (sealed === '') return undefined
  const [keyHash, maskedKey, mode, externalId, until] = openFields(seal, sealed)
  if (until <= now) throw invalidTicket()
  return { keyHash: Buffer.from(keyHash, 'base64url'), maskedKey, mode, externalId }
}

type SealedFields = [string, string, KeyMode, string | null, number]

function openFields(seal: Seal, sealed: string): SealedFields {
  try {
    return JSON.parse(seal.open(sealed, sealContext)) as SealedFields
  } catch {
    throw invalidTicket()
  }
}

const invalidTicket = (): Refusal =>
  new Refusal('unauthenticated', 'Invalid ticket', 'Leave X-Memory-Ticket out: no client makes one')
