import { createCredentials } from '#scripts/create-credentials.ts'
import type { FirstKeys } from '#scripts/credentials.ts'
import type { Config } from '#shared/core/config.ts'
import { serviceActor } from '#shared/events/account-events.postgres.ts'
import { operatorEmail } from '#shared/access/admin.ts'
import { storeProviderKey } from '#shared/access/provider-key.ts'
import { Seal } from '#shared/core/seal.ts'
import { hasAccounts, upsertAccount } from '#shared/access/accounts.postgres.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'

/**
 * Creates the first account of a new service: unlimited, with a card on file and the operator's
 * provider keys. Later changes of the environment do not change the provider keys of the account.
 *
 * @param provideKeys called once, before the commit: returns the raw keys after it has saved or printed
 *   them, because the database stores their hashes only
 * @returns its keys, or null when an account exists
 */
export async function createFirstAccount(
  postgres: Postgres,
  { keyPepper, adminEmail, masterKeys, providers }: Config,
  provideKeys: () => FirstKeys,
): Promise<FirstKeys | null> {
  if (await hasAccounts(postgres.query)) return null
  const email = operatorEmail({ adminEmail })
  const billing = { paymentMethod: 'on-file', balance: null }
  const seal = new Seal(masterKeys)

  return postgres.transaction(async ({ query }) => {
    const account = await upsertAccount({ query }, email, billing)
    const keyOwner = { account, actor: serviceActor }
    for (const { name, apiKey } of providers.values()) {
      if (apiKey) await storeProviderKey({ query, seal }, keyOwner, name, apiKey)
    }
    const keys = provideKeys()
    const labels = { email, keyName: 'First Key', keyLifetimeDays: null, adminLifetimeDays: 365 }
    await createCredentials({ query }, keyPepper, { ...billing, ...labels }, keys)
    return keys
  })
}
