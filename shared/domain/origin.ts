import type { Memory } from '#shared/domain/memory.ts'
import { fieldsMax, metadataTerms } from '#shared/domain/metadata.ts'
import type { Metadata, MetadataFilter } from '#shared/domain/metadata.ts'

/** Who a memory comes from. */
type Origin = 'person' | 'model' | 'program' | 'import' | 'seed' | 'reflection'

/** As metadata say it, in its stored form; none of them is trusted more than what the role says. */
export const saidOrigins: readonly string[] = ['model', 'program', 'import', 'seed'].map(
  origin => `origin="${origin}"`,
)

/** Says an origin in metadata that say none; a client that fills all fields has no room for it. */
export const withSaidOrigin = (origin: 'program' | 'seed', metadata: Metadata = {}): Metadata =>
  isSaid(metadata) || Object.keys({ ...metadata, origin }).length > fieldsMax
    ? metadata
    : { ...metadata, origin }

const isSaid = ({ origin }: Metadata): boolean => saidOrigins.includes(`origin="${origin}"`)

/** Tells who wrote a memory; a shared one of which nothing else is said is a model's, from what a member said. */
export function originOf({
  tier,
  role,
  tags,
  metadata,
}: Omit<Memory, 'id' | 'text' | 'at' | 'tokens'>): Origin {
  const said = metadata?.['origin'] as Origin
  if (tier > 1) return 'reflection'
  if (saidOrigins.includes(`origin="${said}"`)) return said
  return role === 'system' ? 'program' : role === 'user' && !tags ? 'person' : 'model'
}

/** Whether a model or a program wrote the words of a row, whatever its role. */
export const isSaidByProgram = (metadata: Memory['metadata']): boolean =>
  ['program', 'model'].includes(String(metadata?.['origin']))

export const asksOrigin = (filter: MetadataFilter): boolean =>
  filter.flat().some(choice => choice.startsWith('origin='))

/** The terms of a memory that a filter is compared with. */
export const termsWithOrigin = (memory: Memory): string[] => [
  ...metadataTerms(memory.metadata ?? {}),
  `origin="${originOf(memory)}"`,
]
