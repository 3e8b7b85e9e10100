import { Refusal } from '#shared/core/errors.ts'
import { refusal } from '#shared/core/refusal.ts'
import { containsKey } from '#shared/access/key.ts'
import { recordAccountEvent } from '#shared/events/account-events.postgres.ts'
import type { Seal } from '#shared/core/seal.ts'
import type { Query, Postgres, Transaction } from '#shared/storage/postgres/connect.ts'
import {
  deleteProviderKey,
  findProviderKey,
  listProviderKeys,
  putProviderKey,
  type ProviderKeyRow,
} from '#shared/access/provider-keys.postgres.ts'

/**
 * Checks a provider key: never a Memory Key, and only characters that a header can carry.
 *
 * @returns the key without surrounding white space.
 * @throws Refusal `invalid`.
 */
export function parseProviderKey(text: string): string {
  const key = text.trim()
  if (containsKey(key)) throw refusal('invalid', 'storedKeyIsMemoryKey')
  if (/^[\x21-\x7E]{1,1024}$/.test(key)) return key
  throw new Refusal('invalid', 'key must be 1 to 1024 printable ASCII characters without spaces')
}

/** Stores an account's key for a provider, sealed to its row; it replaces an earlier one. */
export async function storeProviderKey(
  { query, seal }: { query: Query; seal: Seal },
  { account, actor }: { account: string; actor: string },
  provider: string,
  key: string,
): Promise<ProviderKeyRow> {
  const row = await putProviderKey(query, account, {
    provider,
    sealed: seal.seal(key, sealContext(account, provider)),
    masked: maskProviderKey(key),
  })
  const event = { account, actor, action: 'provider_key.stored', subject: provider } as const
  await recordAccountEvent({ query }, event)
  return row
}

/** @returns false when the account has no key for the provider. */
export async function removeProviderKey(
  tx: Transaction,
  { account, actor }: { account: string; actor: string },
  provider: string,
): Promise<boolean> {
  if (!(await deleteProviderKey(tx.query, account, provider))) return false
  await recordAccountEvent(tx, {
    account,
    actor,
    action: 'provider_key.deleted',
    subject: provider,
  })
  return true
}

/** All provider keys of an account, by provider; some may be of one that is not set up any more. */
export async function openProviderKeys(
  { postgres, seal }: { postgres: Postgres; seal: Seal },
  account: string,
): Promise<ReadonlyMap<string, string>> {
  const rows = await listProviderKeys(postgres.query, account)
  return new Map(
    rows.map(({ provider, sealed }) => [
      provider,
      seal.open(sealed, sealContext(account, provider)),
    ]),
  )
}

/** The account's own key for one provider, or undefined when it has none. */
export async function openProviderKey(
  { postgres, seal }: { postgres: Postgres; seal: Seal },
  account: string,
  provider: string,
): Promise<string | undefined> {
  const sealed = await findProviderKey(postgres.query, account, provider)
  return sealed === undefined ? undefined : seal.open(sealed, sealContext(account, provider))
}

/** The mask of a short key shows none of its characters. */
const maskProviderKey = (key: string): string =>
  key.length < 16 ? '…' : `${key.slice(0, 3)}…${key.slice(-4)}`

const sealContext = (account: string, provider: string): string =>
  `provider_keys:${account}:${provider}`
