import { mintId } from '#shared/core/ids.ts'
import type { Caller } from '#shared/access/caller.ts'
import type { UsageWriter } from '#shared/billing/usage.postgres.ts'

/** Billed operations and their kinds. */
const billingByOperation = {
  ingest: 'storage of the tokens of the turns',
  search: 'retrieval of the returned tokens',
  prepare: 'retrieval of the recalled tokens',
  list: 'retrieval of the returned tokens',
  profile: 'retrieval of the tokens of the quotes returned',
  edit: 'storage of the tokens of the new text',
  inspect: 'retrieval of the tokens of the returned sources',
  'date-search': 'retrieval of the returned tokens',
  checkout: 'retrieval of the tokens of the batch',
  commit: 'storage of the tokens of the entries',
  upload: 'storage of the tokens that were stored',
  import: 'storage of the tokens that were stored or replaced',
  transfer: 'storage of the tokens that were copied',
  graft: 'storage of the tokens that were copied',
  proxy: 'retrieval of the recalled tokens and storage of those of the turns',
  'pass-through': 'nothing; the request is counted',
  'delete-ids': 'the tokens of the memories removed',
  'org-extract': 'nothing; the tokens of the model that finds what is worth sharing',
  'org-tag': 'nothing; the tokens of the model that tags it',
  'org-reconcile': 'nothing; the tokens of the model that compares it with what is shared',
} as const

export type BilledOperation = keyof typeof billingByOperation

/** Counts a read, and bills it for the memory tokens it returned: an empty answer is free. */
export function recordRead(
  { usage }: { usage: UsageWriter },
  { account, scope, keyHash }: Caller,
  { kind, tokens, session }: { kind: BilledOperation; tokens: number; session: string | null },
): void {
  const { vault } = scope
  usage.record({ id: mintId(), account, vault, keyHash, kind, session, memoryTokens: tokens })
}

/** A provider request and its counts; 0 where the provider reports none. */
export type ModelCall = {
  /** UUIDv7 of the request: it counts once, however often it is recorded. */
  id: string
  kind: 'proxy' | 'pass-through'
  /** Provider-prefixed. */
  model: string
  session: string | null
  inputTokens: number
  outputTokens: number
  /** Tokens of the memories recalled for it. */
  recalledTokens: number
}

/** Counts a model call that stores nothing; a stored one is billed with what it stores. */
export function recordModelCall(
  { usage }: { usage: UsageWriter },
  { account, scope, keyHash }: Pick<Caller, 'account' | 'keyHash'> & { scope: { vault: string } },
  { recalledTokens, ...call }: ModelCall,
): void {
  const { vault } = scope
  usage.record({ ...call, account, vault, keyHash, memoryTokens: recalledTokens })
}
