import type { Condition, Test } from '#shared/domain/condition.ts'
import type { Memory } from '#shared/domain/memory.ts'
import { fieldsMax, type Metadata } from '#shared/domain/metadata.ts'

/** Who a memory comes from. */
export const origins = ['person', 'model', 'program', 'import', 'seed', 'reflection'] as const

type Origin = (typeof origins)[number]

/** The origins that metadata may state, where the role alone would say too much; `person` is not believed there. */
const saidOrigins: readonly string[] = ['model', 'program', 'import', 'seed'] satisfies Origin[]

/** Says an origin in metadata that say none; a client that fills all fields has no room for it. */
export const withSaidOrigin = (origin: 'program' | 'seed', metadata: Metadata = {}): Metadata =>
  saidOrigins.includes(String(metadata['origin'])) ||
  Object.keys({ ...metadata, origin }).length > fieldsMax
    ? metadata
    : { ...metadata, origin }

/** Tells who wrote a memory; a shared one of which nothing else is said is a model's, from what a member said. */
export function originOf({
  tier,
  role,
  tags,
  metadata,
}: Omit<Memory, 'id' | 'text' | 'at' | 'tokens'>): Origin {
  const said = metadata?.['origin'] as Origin
  if (tier > 1) return 'reflection'
  if (saidOrigins.includes(said)) return said
  return role === 'system' ? 'program' : role === 'user' && !tags ? 'person' : 'model'
}

/** Whether a model or a program wrote the words of a row, whatever its role. */
export const isSaidByProgram = (metadata: Memory['metadata']): boolean =>
  ['program', 'model'].includes(String(metadata?.['origin']))

const isIn = (field: string, ...values: readonly (string | number)[]): Test => ({
  field,
  op: 'in',
  values,
})
const isShared: Test = { field: 'shared', op: 'exists' }
const isUser = isIn('role', 'user')

/** What `originOf` makes of the role of a raw memory whose metadata do not say it. */
const byRole: { [origin in Origin]?: Condition } = {
  person: { and: [isUser, { not: isShared }] },
  model: { or: [isIn('role', 'assistant'), { and: [isUser, isShared] }] },
  program: isIn('role', 'system'),
}

/** The memories of an origin, as `originOf` tells it. */
export function originCondition(origin: Origin): Condition {
  if (origin === 'reflection') return { not: isIn('tier', 1) }
  const ofRole = byRole[origin]
  const unsaid = { not: isIn('metadata.origin', ...saidOrigins) }
  const said = saidOrigins.includes(origin) ? [isIn('metadata.origin', origin)] : []
  return {
    and: [isIn('tier', 1), { or: [...said, ...(ofRole ? [{ and: [unsaid, ofRole] }] : [])] }],
  }
}
