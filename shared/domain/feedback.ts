/** What its owner says of a memory. */
export type Feedback = 'right' | 'wrong' | 'outdated' | 'not_mine'

/** A memory with one of these is kept, and told no more. */
export const untold: readonly Feedback[] = ['wrong', 'outdated', 'not_mine']

export const isUntold = ({ feedback }: { feedback?: Feedback | undefined }): boolean =>
  feedback !== undefined && untold.includes(feedback)
