import { markAt, type CallTrace, type TracedBlock } from '#shared/vault/read/traces/call-trace.ts'
import type { StoredCallTrace } from '#shared/vault/read/traces/call-traces.postgres.ts'
import type { ReadBlock, RecalledNow } from '#shared/vault/read/traces/read-trace.ts'

/** A trace as a list shows it. */
export const presentTraceSummary = ({
  id,
  session,
  createdAt,
  expiresAt,
  trace,
}: StoredCallTrace) => ({
  trace_id: id,
  created_at: createdAt.toISOString(),
  expires_at: expiresAt.toISOString(),
  session_id: session,
  model: trace.model,
  status: trace.status,
  memories: trace.blocks.reduce((sum, { ids }) => sum + ids.length, 0),
  sent_bytes: trace.sentBytes,
})

/** @param texts whether the policy of the account shows the words of a memory */
export const presentRecalled = ({ id, turns, lastAt, memory }: RecalledNow, texts: boolean) => ({
  memory_id: id,
  turns,
  last_recalled_at: lastAt.toISOString(),
  ...(memory &&
    texts && {
      text: memory.text,
      date: new Date(memory.at).toISOString(),
      tier: memory.tier,
      role: memory.role,
      ...(memory.speaker !== undefined && { name: memory.speaker }),
    }),
})

/** @param texts whether the policy of the account shows the lines of the blocks */
export const presentTrace = (
  stored: StoredCallTrace,
  blocks: readonly ReadBlock[],
  texts: boolean,
) => ({
  ...presentCall(stored),
  texts,
  blocks: blocks.map(({ block, lines }) => ({
    ...presentPlace(block),
    memories: lines.map(({ id, state, line }, index) => ({
      memory_id: id,
      state,
      ...(texts && { line }),
      ...presentRanking(block, id, index),
    })),
  })),
})

/** A trace as it is stored: of each line its digest, in place of what became of it. */
export const presentStoredTrace = (stored: StoredCallTrace) => ({
  ...presentCall(stored),
  ...(stored.trace.renamed !== undefined && { renamed: stored.trace.renamed }),
  conversation: stored.trace.conversation,
  blocks: stored.trace.blocks.map(block => ({
    ...presentPlace(block),
    memories: block.ids.map((id, index) => ({
      memory_id: id,
      mark: markAt(block, index),
      ...presentRanking(block, id, index),
      ...(block.lines.some(line => line.id === id && line.later) && { later: true }),
    })),
  })),
})

function presentCall(stored: StoredCallTrace) {
  const { trace } = stored
  return {
    ...presentTraceSummary(stored),
    format: trace.format,
    embeddings: trace.embeddings,
    revision: trace.revision,
    as_of: trace.asOf === undefined ? null : new Date(trace.asOf).toISOString(),
    confidence: trace.confidence === undefined ? null : Math.round(trace.confidence * 100) / 100,
    abstained: trace.abstained ?? null,
    splices: trace.splices,
    removed: removalsOf(trace),
    left_out: trace.leftOut as Record<string, number>,
    received_bytes: trace.receivedBytes,
    sent_sha256: trace.sentSha256,
  }
}

const presentPlace = ({ turn, place, at }: TracedBlock) => ({
  turn,
  parts_before: place,
  told_at: new Date(at).toISOString(),
})

function presentRanking({ lines, ranking }: TracedBlock, id: string, index: number) {
  const told = lines.find(one => one.id === id)
  return {
    ...ranking[index],
    ...(told?.from !== undefined && { from: told.from }),
    ...(told?.to !== undefined && { to: told.to }),
  }
}

function removalsOf({ removed }: Pick<CallTrace, 'removed'>): { at: number; bytes: number }[] {
  const starts = removed.filter((_, index) => index % 2 === 0)
  return starts.map((at, index) => ({ at, bytes: removed[2 * index + 1]! - at }))
}
