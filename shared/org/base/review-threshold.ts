/** A memory that is less sure of its tags than this waits for a person's review. */
export const reviewThreshold = 0.6
