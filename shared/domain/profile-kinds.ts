import headings from '#shared/domain/profile-kinds.json' with { type: 'json' }

export type ProfileKind = keyof typeof headings

/** The headings of the kinds of statements. */
export const profileHeadings: Record<ProfileKind, string> = headings

/** The kinds of statements, in the order of a profile. */
export const profileKinds = Object.keys(headings) as ProfileKind[]
