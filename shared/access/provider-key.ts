import { Refusal } from '#shared/core/errors.ts'
import { containsKey } from '#shared/access/key.ts'
import type { Seal } from '#shared/core/seal.ts'
import type { Query, Postgres } from '#shared/storage/postgres/connect.ts'
import {
  findProviderKey,
  listProviderKeys,
  putProviderKey,
  type ProviderKeyRow,
} from '#shared/access/provider-keys.postgres.ts'
import { providerNames, type ProviderName } from '#shared/core/provider-registry.ts'

/**
 * What may be sent to a provider as its key: never a Memory Key, and nothing a header cannot carry.
 *
 * @returns it without the white space around it.
 * @throws Refusal `invalid`.
 */
export function parseProviderKey(given: string): string {
  const key = given.trim()
  if (containsKey(key)) {
    throw new Refusal(
      'invalid',
      'key is a Memory Key',
      'Store the key that the model provider gave you',
    )
  }
  if (/^[\x21-\x7E]{1,1024}$/.test(key)) return key
  throw new Refusal('invalid', 'key must be 1 to 1024 printable ASCII characters without spaces')
}

/** Stores an account's key for a provider, sealed to its row. */
export function storeProviderKey(
  { query, seal }: { query: Query; seal: Seal },
  account: string,
  provider: ProviderName,
  key: string,
): Promise<ProviderKeyRow> {
  return putProviderKey(query, account, {
    provider,
    sealed: seal.seal(key, sealContext(account, provider)),
    masked: maskProviderKey(key),
  })
}

/** Every provider key an account may use: its own. */
export async function openProviderKeys(
  { postgres, seal }: { postgres: Postgres; seal: Seal },
  account: string,
): Promise<Partial<Record<ProviderName, string>>> {
  const rows = await listProviderKeys(postgres.query, account)
  const known = rows.filter(({ provider }) => isProviderName(provider))
  return Object.fromEntries(
    known.map(({ provider, sealed }) => [
      provider,
      seal.open(sealed, sealContext(account, provider)),
    ]),
  )
}

/** The account's own key for one provider, or undefined when it has none. */
export async function openProviderKey(
  { postgres, seal }: { postgres: Postgres; seal: Seal },
  account: string,
  provider: ProviderName,
): Promise<string | undefined> {
  const sealed = await findProviderKey(postgres.query, account, provider)
  return sealed === undefined ? undefined : seal.open(sealed, sealContext(account, provider))
}

export const isProviderName = (name: string): name is ProviderName =>
  (providerNames as string[]).includes(name)

/** A short key shows nothing but that it is there. */
const maskProviderKey = (key: string): string =>
  key.length < 16 ? '…' : `${key.slice(0, 3)}…${key.slice(-4)}`

const sealContext = (account: string, provider: string): string =>
  `provider_keys:${account}:${provider}`
