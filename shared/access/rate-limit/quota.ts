/** A number of points within a window of seconds; the window starts with the first point. */
export type Quota = { points: number; seconds: number }

/** The use of a quota by all processes. */
type QuotaUsage = {
  /**
   * Points used or leased in this window; more than the quota when the last request asked for too
   * many.
   */
  taken: number
  /** Milliseconds until the window ends. */
  resetInMs: number
}

/** Counts the points of one quota for all processes. */
export type PointStore = {
  /**
   * Takes points for a subject, even when fewer are left, and returns the total taken.
   *
   * @throws Error when the store is out of reach.
   */
  take(subject: string, points: number): Promise<QuotaUsage>
}
