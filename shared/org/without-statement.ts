import type { SharedStatement } from '#shared/org/shared-statements.postgres.ts'
import type { MemorySnapshot } from '#shared/org/shared-writes.postgres.ts'

/** Surely below the threshold of a review. */
const doubtfulConfidence = 0.5

/**
 * A shared memory as it is once a member has taken a statement back; null: it is removed.
 *
 * - Words of others, or of an admin, stay; the member is no longer among their authors.
 * - Words that another member said again since stay in that member's name.
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
  const repeated = others.findLast(
    one => one.action === 'NONE' && !one.outdated && one.recordedAt > statement.recordedAt,
  )
  if (repeated) return attributed(inNameOf(memory, repeated), [...contributors, repeated.author])
  const earlier = others
    .filter(({ action }) => action !== 'NONE')
    .toSorted((one, other) => one.saidAt.getTime() - other.saidAt.getTime())
    .at(-1)
  if (!earlier) return null
  const restored = { ...inNameOf(memory, earlier), text: earlier.text }
  const confidence = Math.min(memory.confidence, doubtfulConfidence)
  return { ...attributed(restored, contributors), confidence, reviewed: false, pending: true }
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
