import type { SharedMemory } from '#shared/org/memories/shared-memories.mongo.ts'

/** Words of a member, and when they were said in epoch milliseconds. */
export type Statement = { author: string; saidAt: number }

type Attribution = Pick<SharedMemory, 'author' | 'acquiredAt' | 'origin'>

/** The author and time of new words, beside those of the first. */
export function attributeTo(
  { author, acquiredAt, origin }: Attribution,
  statement: Statement,
): Attribution {
  const first = origin ?? { author, acquiredAt, contributors: [author] }
  const contributors = [...new Set([...first.contributors, statement.author])]
  const { author: sayer, saidAt } = statement
  return { author: sayer, acquiredAt: saidAt, origin: { ...first, contributors } }
}
