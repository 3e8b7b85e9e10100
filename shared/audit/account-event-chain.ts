import { chained, walkChain, type Link, type WalkedChain } from '#shared/core/hash-chain.ts'
import { eventHead, eventLinks, type AccountEvent } from '#shared/audit/account-events.postgres.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'

export type CheckedEvents = WalkedChain & { account: string }

/**
 * Counts the hashes of an account's events anew.
 *
 * @param anchors of this account, from earlier checks
 * @returns the end of the chain, or the first event where it is broken.
 */
export async function checkEvents(
  query: Query,
  account: string,
  anchors: readonly { position: number; hash: string }[] = [],
): Promise<CheckedEvents> {
  const head = () => eventHead(query, account)
  const rows = chained<AccountEvent>(page => eventLinks(query, account, page))
  return {
    account,
    ...(await walkChain({ owner: account, rows, linkOf: eventLinkOf, head, anchors })),
  }
}

/** An event as its hash is made of it. */
export const eventLinkOf = (event: AccountEvent): Link => {
  const { position, hash, id, action, subject, micros, actor } = event
  return { position, hash, id, said: [action, subject, micros, actor] }
}
