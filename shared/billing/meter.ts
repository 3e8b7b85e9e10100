import { mintId } from '#shared/core/ids.ts'
import type { Caller } from '#shared/access/caller.ts'
import type { UsageWriter } from '#shared/billing/usage-writer.ts'

/** Endpoints that bill the tokens of the memories they return. */
type ReadKind = 'search' | 'prepare' | 'list' | 'profile' | 'inspect' | 'date-search'

/** Counts a read, and bills it for the memory tokens it returned: an empty answer is free, and so is looking. */
export function recordRead(
  { usage }: { usage: UsageWriter },
  { account, scope, keyHash, inspects }: Caller,
  { kind, tokens, session }: { kind: ReadKind; tokens: number; session: string | null },
): void {
  if (inspects) return
  const { vault } = scope
  usage.record({ id: mintId(), account, vault, keyHash, kind, session, memoryTokens: tokens })
}

/** Counts a model call that stores nothing; a stored one is billed with what it stores. */
export function recordModelCall(
  { usage }: { usage: UsageWriter },
  { account, scope, keyHash }: Pick<Caller, 'account' | 'keyHash'> & { scope: { vault: string } },
  {
    recalledTokens,
    ...call
  }: {
    /** UUIDv7 of the request: it counts once, however often it is recorded. */
    id: string
    kind: 'proxy' | 'pass-through'
    /** Provider-prefixed. */
    model: string
    session: string | null
    inputTokens: number
    cachedTokens?: number | undefined
    outputTokens: number
    /** Tokens of the memories recalled for it. */
    recalledTokens: number
  },
): void {
  const { vault } = scope
  usage.record({ ...call, account, vault, keyHash, memoryTokens: recalledTokens })
}
