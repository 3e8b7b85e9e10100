import {
  metadataName,
  passes,
  predicateOf,
  termsPredicate,
  type Condition,
} from '#shared/domain/condition.ts'
import type { Memory } from '#shared/domain/memory.ts'
import { metadataTerms, type MetadataValue } from '#shared/domain/metadata.ts'

/** Makes a predicate of the memories of a session, or with null of the core. */
export const memoryPredicate = (condition: Condition, session: string | null) =>
  predicateOf<Memory>(condition, test => {
    if (metadataName(test) === undefined)
      return memory => passes(test, valuesOf(memory, session)[test.field])
    const holds = termsPredicate(test)
    return ({ metadata }) => holds(metadataTerms(metadata ?? {}))
  })

const valuesOf = (
  memory: Memory,
  session: string | null,
): Record<string, MetadataValue | undefined> => {
  const { role, tier, at: time, importance, speaker: name, tags } = memory
  const shared = tags ? true : undefined
  return {
    role,
    tier,
    time,
    importance,
    name,
    shared,
    session: session ?? undefined,
  }
}
