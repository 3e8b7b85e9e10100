/**
 * SQL condition: the vault is one of the account itself, not of an organization or a member. Such a vault has
 * a key that was made with the account; revoked and expired ones stay as long as the account does. The keys of
 * a removed member are gone before the vault is erased, so the absence of keys does not identify a member's vault.
 *
 * @param vault the column that holds the id of the vault
 */
export const accountVaultSql = (vault: string): string =>
  `exists (select from memory_keys m where m.vault = ${vault} and m.kind = 'vault')`

/**
 * SQL condition: the account may see the operations of the vault (`GET /v1/operations`, webhooks), which is one of its own or the shared vault of
 * one of its organizations. A shared vault has no key.
 *
 * @param vault as for `accountVaultSql`
 */
export const visibleToAccountSql = (vault: string): string =>
  `(${accountVaultSql(vault)} or exists (select from orgs visible where visible.vault = ${vault}))`
