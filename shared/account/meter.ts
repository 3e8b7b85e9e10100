import type { Backend } from '#shared/backend.ts'
import { mintId } from '#shared/ids.ts'
import type { Caller } from '#shared/key/caller.ts'

/** Which operations are billed, and for what. */
const metered = {
  ingest: 'storage of the tokens of the turns',
  search: 'retrieval of the returned tokens',
  prepare: 'retrieval of the recalled tokens',
  list: 'retrieval of the returned tokens',
  edit: 'storage of the tokens of the new text',
  inspect: 'retrieval of the tokens of the returned sources',
  'date-search': 'retrieval of the returned tokens',
  checkout: 'retrieval of the tokens of the batch',
  commit: 'storage of the tokens of the entries',
  upload: 'storage of the tokens that were stored',
  import: 'storage of the tokens that were stored or replaced',
  transfer: 'storage of the tokens that were copied',
  graft: 'storage of the tokens that were copied',
  'delete-ids': 'the tokens of the memories removed',
} as const

export type Metered = keyof typeof metered

/** Bills a read for the memory tokens it returned; an empty answer is free. */
export function recordRead(
  { usage }: Pick<Backend, 'usage'>,
  { account, scope, keyHash }: Caller,
  { kind, tokens, session }: { kind: Metered; tokens: number; session: string | null },
): void {
  if (tokens === 0) return
  const { vault } = scope
  usage.record({ id: mintId(), account, vault, keyHash, kind, session, memoryTokens: tokens })
}
