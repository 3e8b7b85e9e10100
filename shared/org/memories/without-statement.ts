import type { SharedStatement } from '#shared/org/memories/shared-statements.postgres.ts'
import type { MemorySnapshot } from '#shared/org/memories/shared-writes.postgres.ts'

/** Surely below the threshold of a review. */
const doubtfulConfidence = 0.5

/**
 * A shared memory as it is once a member has taken a statement back; null: it is removed.
 *
 * - Words of others, or of an admin, stay; the member is no longer among their authors.
 * - Words that another member said too stay in that member's name, whoever of them said them first.
 * - Words of the member that had taken the place of another's give it back to these, unseen until a person
 *   has decided: they may be no longer true.
 * - Words that no one else said are removed, also when a person had approved them.
 *
 * @param others what has not been taken back, in the order in which it was recorded
 */
export function withoutStatement(
  memory: MemorySnapshot,
  statement: SharedStatement,
  others: readonly SharedStatement[],
): MemorySnapshot | null {
  const { author } = statement
  const saysMore = others.some(one => one.author === author)
  const isItsWords = memory.author === author && memory.acquiredAt === statement.saidAt.getTime()
  const contributors = contributorsOf(memory).filter(one => saysMore || one !== author)
  if (memory.byHand || !isItsWords) return attributed(memory, contributors)
  // Outdated ones never were the words of the memory.
  const standing = others
    .filter(({ outdated }) => !outdated)
    .toSorted((one, other) => one.saidAt.getTime() - other.saidAt.getTime())
  const repeated = standing.filter(
    ({ action, recordedAt }) => action === 'NONE' && recordedAt > statement.recordedAt,
  )
  const newest = standing.at(-1)
  const isInItsWords = newest?.text === memory.text
  const heir =
    repeated.findLast(one => one.author !== author) ??
    repeated.at(-1) ??
    (isInItsWords ? newest : undefined)
  if (heir) return attributed(inNameOf(memory, heir), [...contributors, heir.author])
  if (!newest) return null
  const restored = { ...inNameOf(memory, newest), text: newest.text }
  const confidence = Math.min(memory.confidence, doubtfulConfidence)
  const authors = [...contributors, newest.author]
  return { ...attributed(restored, authors), confidence, reviewed: false, pending: true }
}

const contributorsOf = ({ origin, author }: MemorySnapshot): readonly string[] =>
  origin?.contributors ?? [author]

const inNameOf = (memory: MemorySnapshot, { author, saidAt }: SharedStatement): MemorySnapshot => ({
  ...memory,
  author,
  acquiredAt: saidAt.getTime(),
})

/** With these authors: one who is none of them is neither its first nor its last. */
function attributed(memory: MemorySnapshot, contributors: readonly string[]): MemorySnapshot {
  const { origin, ...others } = memory
  const authors = [...new Set(contributors)]
  const known = (author: string): string => (authors.includes(author) ? author : authors.at(-1)!)
  if (authors.length === 0) return { ...others, author: formerMember }
  const author = known(memory.author)
  if (!origin) return { ...others, author }
  return {
    ...others,
    author,
    origin: { ...origin, author: known(origin.author), contributors: authors },
  }
}

/** The author of words that an admin has changed, once the member who said the first has left them. */
const formerMember = 'a member'
