/** So many points within a window of so many seconds; the window begins with the first of them. */
export type Quota = { points: number; seconds: number }

/** What of a quota is used, as all processes see it together. */
type QuotaUsage = {
  /** Points used or lent in this window; may exceed the quota by what was asked too late. */
  taken: number
  /** Milliseconds until the window ends. */
  resetInMs: number
}

/** Where the points of one quota are counted for all processes. */
export type PointStore = {
  /**
   * Takes points for a subject, also when there are fewer left, and says what is taken then.
   *
   * @throws Error when it cannot be reached.
   */
  take(subject: string, points: number): Promise<QuotaUsage>
}
