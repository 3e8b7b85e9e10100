export type ExpiryPurger = {
  /**
   * Removes what is over in a vault. When this answers true, nothing can be seen any more that was over
   * when it was called, by any process. All who ask for a vault at once wait for the same removal.
   *
   * @returns false when that was not to be done within the time; it goes on.
   */
  purgeExpired(vault: string, withinMs: number): Promise<boolean>
}
