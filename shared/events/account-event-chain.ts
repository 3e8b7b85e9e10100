import { verifyChain, type ChainEntry, type ChainVerification } from '#shared/core/hash-chain.ts'
import {
  accountChainHead,
  accountChainEntries,
  type AccountEvent,
} from '#shared/events/account-events.postgres.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'

/** Recomputes the hash chain of an account's events. @param anchors positions and hashes that earlier checks saw */
export async function verifyAccountEvents(
  query: Query,
  account: string,
  anchors: readonly { position: number; hash: string }[] = [],
): Promise<ChainVerification & { account: string }> {
  const head = () => accountChainHead(query, account)
  const read = async (page: { after: number; limit: number }) =>
    (await accountChainEntries(query, account, page)).map(toEventChainEntry)
  return { account, ...(await verifyChain({ owner: account, read, head, anchors })) }
}

/** The fields that `chain_account_event` has hashed, in order, without a null: another order breaks every chain. */
export const toEventChainEntry = (event: AccountEvent): ChainEntry => {
  const { position, hash, id, action, subject, micros, actor, change } = event
  const payload = [action, subject, micros, actor, ...(change === null ? [] : [change])]
  return { position, hash, id, payload }
}
