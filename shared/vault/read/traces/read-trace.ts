import type { Caller } from '#shared/access/caller.ts'
import { renderMemoryLine, tombstoneLine } from '#shared/domain/context-block.ts'
import type { Memory } from '#shared/domain/memory.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'
import { markAt, markOf, type TracedBlock } from '#shared/vault/read/traces/call-trace.ts'
import {
  countRecalledMemories,
  type RecalledMemory,
  type StoredCallTrace,
  type TraceScope,
  listCallTraces,
} from '#shared/vault/read/traces/call-traces.postgres.ts'
import { undefinedIfUnavailable } from '#shared/vault/base/shared-embedders.ts'
import {
  findExchangeWords,
  type CallWords,
} from '#shared/vault/read/traces/exchange-words.mongo.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import { sessionsToRecall } from '#shared/vault/read/prepare/prepare.ts'
import { asTold } from '#shared/vault/read/prepare/choose-lines.ts'
import { reloadRecalled } from '#shared/vault/read/search/recall.ts'
import { recordPrepared, type RetrievalTrail } from '#shared/vault/read/search/retrieval-trail.ts'
import type { TracePolicy } from '#shared/domain/account-policies.ts'

/** A line of a block against the memory as it is now. */
type TracedLine = {
  id: string
  /** `gone`: deleted, expired, or not to be seen by the caller. */
  state: 'same' | 'changed' | 'gone'
  /** As it stood in the block, or its tombstone. */
  line: string
}

/** A block with its lines, in their order. */
export type ReadBlock = { block: TracedBlock; lines: TracedLine[] }

type ReadBackend = Parameters<typeof reloadRecalled>[0] & { retrievals: RetrievalTrail }

/**
 * The blocks of a trace with the texts that the vault still has and the caller may see now.
 *
 * @throws what `recall` throws, as the functions below.
 */
export async function readTracedBlocks(
  backend: ReadBackend,
  caller: Caller,
  stored: StoredCallTrace,
): Promise<ReadBlock[]> {
  const { blocks } = stored.trace
  const memories = await findTold(backend, caller, stored)
  recordPrepared(backend, caller, [...memories.values()], null)
  return blocks.map(block => ({ block, lines: linesOf(block, memories) }))
}

/** In the space that was searched, or that of the vault now. */
const findTold = (
  backend: ReadBackend,
  caller: Caller,
  { session, trace }: StoredCallTrace,
): Promise<Map<string, Memory>> =>
  findMemories(backend, caller, {
    ids: [...new Set(trace.blocks.flatMap(block => block.ids))],
    sessions: sessionsToRecall(session),
    spaces: [trace.embeddings],
  })

/** A memory that was recalled, as it is now; undefined: gone, or not to be seen by the caller. */
export type RecalledNow = RecalledMemory & { memory: Memory | undefined }

/** The memories that a vault's model calls were given most since a moment, as the caller may see them. */
export async function readRecalledMemories(
  backend: ReadBackend & { postgres: { query: Query } },
  caller: Caller,
  scope: TraceScope,
  range: { since: number; limit: number },
): Promise<RecalledNow[]> {
  const recalled = await countRecalledMemories(backend.postgres.query, scope, range)
  const found = await findMemories(backend, caller, {
    ids: recalled.map(({ id }) => id),
    sessions: [...new Set([null, ...recalled.map(({ session }) => session)])],
    spaces: recalled.map(({ embeddings }) => embeddings),
  })
  recordPrepared(backend, caller, [...found.values()], null)
  return recalled.map(one => ({ ...one, memory: found.get(one.id) }))
}

/** In the space of the vault now, or in one of others. */
async function findMemories(
  backend: ReadBackend,
  caller: Caller,
  places: { ids: readonly string[]; sessions: (string | null)[]; spaces: readonly string[] },
): Promise<Map<string, Memory>> {
  const { ids, sessions, spaces } = places
  const found = new Map<string, Memory>()
  const current = caller.keyRow.embeddingModel ?? backend.embedders.defaultModel
  for (const embeddings of new Set([current, ...spaces])) {
    if (backend.embedders.unavailableReason(embeddings)) continue
    const missing = ids.filter(id => !found.has(id))
    const memories = await reloadRecalled(backend, caller, { ids: missing, sessions, embeddings })
    for (const memory of memories) found.set(memory.id, memory)
  }
  return found
}

function linesOf(block: TracedBlock, memories: ReadonlyMap<string, Memory>): TracedLine[] {
  const { ids, lines, at } = block
  const present = ids.flatMap(id => memories.get(id) ?? [])
  const told = new Map(asTold(present, lines).map(memory => [memory.id, memory]))
  return ids.map((id, index) => {
    const memory = told.get(id)
    if (!memory) return { id, state: 'gone', line: tombstoneLine(id, 'gone') }
    const line = renderMemoryLine(memory, at)
    return markOf(block.isByText ? memory.text : line) === markAt(block, index)
      ? { id, state: 'same', line }
      : { id, state: 'changed', line: tombstoneLine(id, 'changed') }
  })
}

/** Rows per statement: the longest trace has some 100 kB. */
const pageRows = 50

/** Every trace that a vault may show under a policy, newest first, one page in memory at a time. */
export async function* listAllCallTraces(
  query: Query,
  vault: string,
  { mode, days }: TracePolicy,
): AsyncGenerator<StoredCallTrace> {
  if (mode === 'off') return
  let before: string | undefined
  for (;;) {
    const page = { before, limit: pageRows }
    const traces = await listCallTraces(query, { vault, days }, page)
    for (const trace of traces) yield mode === 'texts' ? trace : { ...trace, question: null }
    if (traces.length < pageRows) return
    before = traces.at(-1)!.id
  }
}

/** A trace with the words of its call. */
export type WordedTrace = StoredCallTrace & CallWords

/** Memories of a call that are read for its words: in a list, and of one trace. */
const wordChunksMax = { list: 16, whole: 512 }

/**
 * Traces with the words of their calls that the reader may see. Without MongoDB those of model calls are missing.
 *
 * @param extent how much of long ones is read
 */
export async function readWords(
  { mongo, now }: { mongo: Mongo; now: () => number },
  traces: readonly StoredCallTrace[],
  extent: keyof typeof wordChunksMax,
): Promise<WordedTrace[]> {
  const calls = traces.filter(({ way, isReadable }) => way === 'proxy' && isReadable)
  const bounds = { chunksMax: wordChunksMax[extent], now: now() }
  const stored = await undefinedIfUnavailable(findExchangeWords(mongo, calls, bounds))
  return traces.map(trace => {
    const words = stored?.get(trace.id)
    return { ...trace, answer: words?.answer ?? null, question: words?.question ?? trace.question }
  })
}
