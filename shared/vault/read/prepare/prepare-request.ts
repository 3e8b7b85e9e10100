import type { Message } from '#shared/domain/message-content.ts'
import type { MetadataFilter } from '#shared/domain/metadata.ts'
import type { Tier } from '#shared/domain/memory.ts'
import type { RecallFilters } from '#shared/vault/read/search/recall.ts'

export type Density = 'low' | 'default' | 'high' | 'xhigh'

/** How many memories a density may bring. */
const densityLimits: Record<Density, number> = {
  low: 12,
  default: 30,
  high: 60,
  xhigh: 120,
}

/** How many tokens a block may have by density: the second bound. */
const densityTokens: Record<Density, number> = {
  low: 700,
  default: 1_500,
  high: 3_000,
  xhigh: 6_000,
}
/** For each memory that `context_limit` asks for, where that is more than the default. */
const tokensPerMemory = 50

export type PrepareRequest = {
  messages: readonly Message[]
  session: string | null
  embeddings: string | undefined
  density: Density | undefined
  /** Overrides the density: 1 to 500 memories, and tokens for as many short ones. */
  limit: number | undefined
  tiers: readonly Tier[] | undefined
  importance: number | undefined
  /** Lowest relevance as answers show it, 0 to 1. */
  minScore?: number | undefined
  /** Memories without such metadata are left out. */
  metadata?: MetadataFilter | undefined
  /** Epoch ms: the conversation is held then, and later memories are unknown. */
  asOf?: number | undefined
}

/** How many memories and tokens the block may have. */
export const prepareBounds = ({
  density = 'default',
  limit,
}: Pick<PrepareRequest, 'density' | 'limit'>): { limit: number; tokensMax: number } =>
  limit === undefined
    ? { limit: densityLimits[density], tokensMax: densityTokens[density] }
    : { limit, tokensMax: Math.max(densityTokens.default, limit * tokensPerMemory) }

/** What it asks of memories beside having to do with the conversation. */
export const filtersOf = ({
  tiers,
  importance,
  minScore,
  metadata,
  asOf,
}: PrepareRequest): RecallFilters => ({ tiers, importance, minScore, metadata, asOf })
