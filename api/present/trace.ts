import type { Prices } from '#shared/models/prices.ts'
import { markAt, type CallTrace, type TracedBlock } from '#shared/vault/read/traces/call-trace.ts'
import type { StoredCallTrace } from '#shared/vault/read/traces/call-traces.postgres.ts'
import type { ReadBlock, RecalledNow, WordedTrace } from '#shared/vault/read/traces/read-trace.ts'

/** Characters of question and answer in a list. */
const listedCharacters = 300

/** Does not end in half a character. */
const beginningOf = (text: string | null): string | null =>
  text && text.slice(0, listedCharacters).replace(/[\uD800-\uDBFF]$/, '')

/** A trace as a list shows it. */
export const presentTraceSummary = (
  trace: WordedTrace,
  { texts, prices }: { texts: boolean; prices: Prices },
) => ({
  ...presentSummary(trace, texts),
  cost_usd: costOf(trace, prices),
  question: beginningOf(trace.question),
  answer: beginningOf(trace.answer),
})

/** By the prices of today; null where they or the tokens are not known. */
function costOf({ trace: { model }, outcome }: StoredCallTrace, prices: Prices): number | null {
  const { input, cached = 0, output } = outcome ?? {}
  if (model === undefined || input === undefined || output === undefined) return null
  return prices.costOf(model, { inputTokens: input, cachedTokens: cached, outputTokens: output })
}

function presentSummary(
  { id, way, user, session, createdAt, expiresAt, trace, outcome, isReadable }: StoredCallTrace,
  texts: boolean,
) {
  const { model, status, confidence, abstained, blocks } = trace
  const { recall, provider, total, input, output, status: answerStatus, error } = outcome ?? {}
  return {
    trace_id: id,
    way,
    user,
    created_at: createdAt.toISOString(),
    expires_at: expiresAt.toISOString(),
    session_id: session,
    model: model ?? null,
    status,
    confidence: confidence === undefined ? null : Math.round(confidence * 100) / 100,
    abstained: abstained ?? null,
    memories: trace.memories ?? blocks.reduce((sum, { ids }) => sum + ids.length, 0),
    left_out_memories: trace.leftOutMemories ?? 0,
    tokens: trace.tokens ?? 0,
    latency: { recall: recall ?? null, provider: provider ?? null, total: total ?? null },
    input_tokens: input ?? null,
    output_tokens: output ?? null,
    sent_bytes: trace.sentBytes ?? 0,
    answer_status: answerStatus ?? null,
    error:
      error === undefined
        ? null
        : { from: error.from ?? null, words: texts && isReadable ? error.words : '' },
    readable: isReadable,
  }
}

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
  stored: WordedTrace,
  blocks: readonly ReadBlock[],
  { texts, prices }: { texts: boolean; prices: Prices },
) => ({
  ...presentCall(stored, texts),
  cost_usd: costOf(stored, prices),
  question: stored.question,
  answer: stored.answer,
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

/**
 * A trace as it is stored: of each line its digest, in place of what became of it; the question of a call that stores
 * nothing.
 */
export const presentStoredTrace = (stored: StoredCallTrace) => ({
  ...presentCall(stored, true),
  ...(stored.question !== null && { question: stored.question }),
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

function presentCall(stored: StoredCallTrace, texts: boolean) {
  const { trace } = stored
  return {
    ...presentSummary(stored, texts),
    format: trace.format ?? null,
    embeddings: trace.embeddings,
    revision: trace.revision,
    as_of: trace.asOf === undefined ? null : new Date(trace.asOf).toISOString(),
    splices: trace.splices ?? [],
    removed: removalsOf(trace),
    left_out: (trace.leftOut ?? {}) as Record<string, number>,
    received_bytes: trace.receivedBytes ?? 0,
    sent_sha256: trace.sentSha256 ?? null,
  }
}

const presentPlace = ({ turn, place, at }: TracedBlock) => ({
  turn,
  parts_before: place,
  told_at: new Date(at).toISOString(),
})

function presentRanking({ lines, ranking }: TracedBlock, id: string, index: number) {
  const told = lines.find(one => one.id === id)
  const ranked = ranking[index]
  return {
    // Traces of before 1.1.0 have another word for it.
    ...(ranked && { ...ranked, why: ranked.why.map(why => (why === 'reply' ? 'context' : why)) }),
    ...(told?.from !== undefined && { from: told.from }),
    ...(told?.to !== undefined && { to: told.to }),
  }
}

function removalsOf({ removed = [] }: Pick<CallTrace, 'removed'>): { at: number; bytes: number }[] {
  const starts = removed.filter((_, index) => index % 2 === 0)
  return starts.map((at, index) => ({ at, bytes: removed[2 * index + 1]! - at }))
}
