/** The number of elements that Postgres assumes of an array it does not know (`estimate_array_length` in selfuncs.c). */
const assumedLength = 10

/**
 * An array for a prepared statement of a hot path, filled up with nulls, which its statement must ignore.
 *
 * A shorter array makes the plan for these very values look cheaper than the one for any values, so Postgres would
 * plan at each execution (`choose_custom_plan` in plancache.c). The statement that reads a key, by which every request
 * begins, took 1 ms to plan and 0.15 ms to execute (`explain analyze`, 15,000 vaults).
 */
export const padArray = <Value>(values: readonly Value[]): (Value | null)[] =>
  values.length >= assumedLength
    ? [...values]
    : [...values, ...Array.from({ length: assumedLength - values.length }, () => null)]
