import type { Decision, Fact, TaggedFact } from '#shared/org/base/org-turns.postgres.ts'
import type {
  MemoryPassResults,
  RetrievalTrailEntry,
  TurnTrailEntry,
} from '#shared/org/base/org-trail.postgres.ts'

/** One entry of an organization's trail. */
export const presentTrailEntry = (entry: TurnTrailEntry | RetrievalTrailEntry) => ({
  kind: entry.kind,
  turn_id: entry.id,
  author: entry.author,
  created_at: entry.createdAt.getTime(),
  ...(entry.kind === 'write' ? presentWrite(entry) : presentRetrieval(entry)),
})

/** The ids of the memories that an entry names: of a retrieval, those that were kept back first. */
export const memoriesNamedBy = (entry: TurnTrailEntry | RetrievalTrailEntry): string[] =>
  entry.kind === 'retrieval'
    ? [...[...(entry.denied ?? []), ...entry.sample].map(({ id }) => id), ...entry.returned]
    : (entry.pass3 ?? []).flatMap(({ mem_id, replaces }) =>
        [mem_id, replaces].filter(id => typeof id === 'string'),
      )

const presentWrite = (entry: TurnTrailEntry) => ({
  state: entry.state,
  left_out: entry.leftOut,
  ...(entry.withheld !== null && { withheld: entry.withheld }),
  ...presentPasses(entry),
})

/** The results of the passes about a turn or a memory; null for a pass that has not run. */
export const presentPasses = ({ pass1, pass2, pass3 }: MemoryPassResults | TurnTrailEntry) => ({
  pass1: pass1?.map(presentFact) ?? null,
  pass2: pass2?.map(presentTaggedFact) ?? null,
  pass3: pass3?.map(presentDecision) ?? null,
})

const presentFact = ({ text, confidence, note }: Fact) => ({ text, confidence, note })

const presentTaggedFact = ({ text, tags, confidence }: TaggedFact) => ({ text, tags, confidence })

const presentDecision = ({ text, action, mem_id, also, replaces, outdated, copy }: Decision) => ({
  text,
  action,
  mem_id,
  ...(also && { also: also.map(further => further.mem_id) }),
  ...(outdated && { outdated }),
  ...(replaces !== undefined && { replaces }),
  ...(copy?.mem_id && { copy: copy.mem_id }),
})

const presentHidden = ({ id, tags }: { id: string; tags: string[] }) => ({ mem_id: id, tags })

const presentRetrieval = (entry: RetrievalTrailEntry) => ({
  allowed_tags: entry.allowedTags,
  wildcard: entry.wildcard,
  permitted: entry.permitted,
  dropped: entry.dropped,
  dropped_sample: entry.sample.map(presentHidden),
  request: entry.request,
  returned: entry.returned.length,
  returned_ids: entry.returned,
  denied: entry.denied?.length ?? null,
  denied_memories: entry.denied?.map(presentHidden) ?? null,
})
