import type { Context } from 'koa'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import type { Caller } from '#shared/access/caller.ts'
import { mintId } from '#shared/core/ids.ts'
import type { Message } from '#shared/domain/message-content.ts'
import type { RecallTrace } from '#shared/vault/read/traces/call-trace.ts'
import { keepQuestion } from '#shared/vault/read/traces/kept-question.ts'

/** By it the tools of MCP name themselves to the endpoints that they call. */
export const wayHeader = 'x-memory-way'

type LoggedRecall = {
  way: 'prepare' | 'search'
  session: string | null
  /** The embedding model that was searched; undefined: the default one. */
  embeddings: string | undefined
  asOf: number | undefined
  /** What was asked; undefined where nothing was. */
  question: Message | undefined
  /** When the request was taken, and when the recall ended, by `performance.now()`. */
  startedAt: number
  recalledAt: number
  /** What was recalled; called where a trace is kept. */
  trace: () => Omit<RecallTrace, 'embeddings' | 'revision' | 'asOf'>
}

/**
 * Writes a call that recalled something for a client into the call log, and names its trace in a header. Nothing is
 * written for a key that may not read, and where the policy of the account has no traces.
 */
export function logRecall(
  ctx: Context,
  { callLog, embedders }: Pick<ApiBackend, 'callLog' | 'embedders'>,
  { scope, keyRow, permissions }: Caller,
  { way, session, embeddings, asOf, question, startedAt, recalledAt, trace }: LoggedRecall,
): void {
  const { mode, days } = keyRow.traces
  if (mode === 'off' || !permissions.retrieve) return
  const id = mintId()
  ctx.set('X-Memory-Trace', id)
  const { vault, epoch, revision } = scope
  // Built now: rows and request, kept until the statement, would outlive the youngest generation of the heap.
  const entry = {
    id,
    vault,
    epoch,
    session,
    days,
    way: ctx.get(wayHeader) === 'mcp' ? 'mcp' : way,
    trace: {
      embeddings: embeddings ?? embedders.defaultModel,
      revision,
      ...(asOf !== undefined && { asOf }),
      ...trace(),
    },
    outcome: {
      recall: Math.round(recalledAt - startedAt),
      total: Math.round(performance.now() - startedAt),
    },
  } as const
  const { redaction } = keyRow
  const asked = mode === 'texts' ? question : undefined
  callLog.record(async () => ({
    ...entry,
    question: asked && (await keepQuestion(redaction, asked)),
  }))
}
