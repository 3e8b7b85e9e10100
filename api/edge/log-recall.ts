import type { Context } from 'koa'
import type { Backend } from '#shared/backend.ts'
import { statusOfRefusal } from '#api/edge/errors.ts'
import type { Caller } from '#shared/access/caller.ts'
import { maskKeys } from '#shared/access/key.ts'
import { Refusal } from '#shared/core/errors.ts'
import { mintId } from '#shared/core/ids.ts'
import type { Message } from '#shared/domain/message-content.ts'
import type { NewCallTrace } from '#shared/vault/read/traces/call-traces.postgres.ts'
import type { CallWay, RecallTrace } from '#shared/vault/read/traces/call-trace.ts'
import { keepQuestion } from '#shared/vault/read/traces/kept-question.ts'

/** By it the tools of MCP name themselves to the endpoints that they call. */
export const wayHeader = 'x-memory-way'

/** The calls that are logged, by the pattern of their path. */
const ways: readonly (readonly [RegExp, CallWay])[] = [
  [/^\/v1\/(?:chat\/completions|responses|messages)$|^\/v1(?:beta)?\/models\/./, 'proxy'],
  [/^\/v1\/memory\/prepare$/, 'prepare'],
  [/^\/v1\/memory\/(?:date-)?search$/, 'search'],
]

/** Writes a call into the call log that was refused before memory was read; an error that is no refusal is none. */
export function logRefused(
  { method, path }: Pick<Context, 'method' | 'path'>,
  { callLog, embedders }: Pick<Backend, 'callLog' | 'embedders'>,
  { scope, keyRow }: Caller,
  error: unknown,
): void {
  const way = ways.find(([pattern]) => pattern.test(path))?.[1]
  if (!way || method !== 'POST' || keyRow.traces.mode === 'off' || !(error instanceof Refusal))
    return
  const { vault, epoch, revision } = scope
  const { days } = keyRow.traces
  const entry: NewCallTrace = {
    id: mintId(),
    vault,
    epoch,
    session: null,
    days,
    way,
    trace: { embeddings: embedders.defaultModel, revision, status: 'off', blocks: [] },
    outcome: { status: statusOfRefusal(error), error: { words: maskKeys(error.message) } },
  }
  callLog.record(async () => entry)
}

/**
 * Writes a call that recalled something for a client into the call log, and names its trace in a header. Nothing is
 * written for a key that may not read, for an owner who looks, and where the policy of the account has no traces.
 */
export function logRecall(
  ctx: Context,
  { callLog, embedders }: Pick<Backend, 'callLog' | 'embedders'>,
  { scope, keyRow, permissions, inspects }: Caller,
  loggedRecall: {
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
  },
): void {
  const { way, session, embeddings, asOf, question, startedAt, recalledAt, trace } = loggedRecall
  const { mode, days } = keyRow.traces
  if (mode === 'off' || !permissions.retrieve || inspects) return
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
