import { presentEnd } from '#api/present/end.ts'
import { presentPeriod } from '#api/present/listed.ts'
import type { Inspected } from '#shared/vault/read/inspect.ts'
import type { Memory } from '#shared/domain/memory.ts'
import type { Traced } from '#shared/vault/read/lineage.mongo.ts'

/** A memory with the tiers below and above it. */
export const presentInspected = ({ memory, sources, total, deleted, into }: Inspected) => ({
  memory_id: memory.id,
  tier: memory.tier,
  batch_id: memory.batch,
  covers: memory.covers && presentPeriod(memory.covers),
  sources: sources.map(presentSource),
  sources_total: total,
  sources_deleted: deleted,
  truncated: total - deleted > sources.length,
  consolidated_into: into.map(presentCovering),
  ...presentEnd(memory),
})

const presentSource = ({ id, tier, text, role, importance, at }: Memory) => ({
  id,
  tier,
  content: text,
  role,
  importance: importance ?? null,
  date: new Date(at).toISOString(),
})

const presentCovering = ({ id, tier, text, importance, at, covers }: Traced) => ({
  id,
  tier,
  content: text,
  importance,
  date: new Date(at).toISOString(),
  covers: presentPeriod(covers ?? { from: at, to: at }),
})
