import { presentExpiry } from '#api/present/expiry.ts'
import type { MemoryInspection, MemoryLineage } from '#shared/vault/read/lists/inspect.mongo.ts'
import type { Memory } from '#shared/domain/memory.ts'
import { presentSpan } from '#api/present/span.ts'

/** A memory with the tiers below and above it. */
export const presentInspection = ({
  memory,
  sources,
  sourcesTotal,
  sourcesDeleted,
  consolidatedInto,
}: MemoryInspection) => ({
  memory_id: memory.id,
  tier: memory.tier,
  batch_id: memory.batch,
  covers: memory.covers && presentSpan(memory.covers),
  sources: sources.map(presentSource),
  sources_total: sourcesTotal,
  sources_deleted: sourcesDeleted,
  truncated: sourcesTotal - sourcesDeleted > sources.length,
  consolidated_into: consolidatedInto.map(presentCoveringReflection),
  ...presentExpiry(memory),
})

const presentSource = ({ id, tier, text, role, importance, at }: Memory) => ({
  id,
  tier,
  content: text,
  role,
  importance: importance ?? null,
  date: new Date(at).toISOString(),
})

const presentCoveringReflection = ({ id, tier, text, importance, at, covers }: MemoryLineage) => ({
  id,
  tier,
  content: text,
  importance,
  date: new Date(at).toISOString(),
  covers: presentSpan(covers ?? { from: at, to: at }),
})
