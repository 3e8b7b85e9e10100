/**
 * SQL condition: the vault is one of the account itself, not of an organization or a member. Such a vault has
 * a key that was made with the account; revoked and expired ones stay as long as the account does. The keys
 * of a removed member are gone while the vault is still being erased: it is not told by what it has not.
 *
 * @param vault the column that holds the id of the vault
 */
export const accountVaultSql = (vault: string): string =>
  `exists (select from memory_keys m where m.vault = ${vault} and m.kind = 'vault')`

/**
 * SQL condition: the account is told of the work in the vault: one of its own, or the shared vault of one of
 * its organizations, which has no key.
 *
 * @param vault as for `accountVaultSql`
 */
export const toldVaultSql = (vault: string): string =>
  `(${accountVaultSql(vault)} or exists (select from orgs told where told.vault = ${vault}))`
