import groups from '#shared/search/tuned.json' with { type: 'json' }

/**
 * The numbers that were tuned, by group and name. `tuned.json` has them with their units, what they mean, and the
 * bench and half that they were tuned on.
 */
export const tuned = Object.fromEntries(
  Object.entries(groups).map(([group, { values }]) => [
    group,
    Object.fromEntries(Object.entries(values).map(([name, { value }]) => [name, value])),
  ]),
) as {
  readonly [Name in keyof typeof groups]: {
    readonly [Value in keyof (typeof groups)[Name]['values']]: number
  }
}
