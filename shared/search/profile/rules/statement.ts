/** The kinds of statements, in the order of a profile. */
export const profileKinds = [
  'instruction',
  'name',
  'role',
  'place',
  'date',
  'person',
  'preference',
  'possession',
  'change',
] as const

export type ProfileKind = (typeof profileKinds)[number]

/** One thing that a statement says; a later one of the same kind and subject replaces it. */
export type Fact = {
  kind: ProfileKind
  /** Such as `home` or `birthday mother`. */
  subject: string
  /** What is said of it, folded; equal where the same is said again. */
  value: string
}

/** A sentence in which a person says something that lasts. */
export type Statement = {
  kind: ProfileKind
  /** The sentence as it was written: a part of the text. */
  quote: string
  /** What it says, where that can be replaced. */
  facts: readonly Fact[]
  /** What holds no longer; with an empty value whatever is known of the subject. */
  ends: readonly Fact[]
}
