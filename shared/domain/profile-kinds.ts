/** The kinds of statements, in the order of a profile. */
export const profileKinds = [
  'instruction',
  'name',
  'role',
  'place',
  'date',
  'person',
  'health',
  'preference',
  'possession',
  'change',
] as const

export type ProfileKind = (typeof profileKinds)[number]
