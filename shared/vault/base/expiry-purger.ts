export type ExpiryPurger = {
  /**
   * Removes the expired memories of a vault. When it returns true, no process can see a memory that had
   * expired when it was called. Concurrent calls for one vault share a purge.
   *
   * @returns false when the purge takes longer than `withinMs`; it continues.
   */
  purgeExpired(vault: string, withinMs: number): Promise<boolean>
}
