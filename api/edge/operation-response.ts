import type { Context } from 'koa'
import { presentOperationOutcome } from '#api/present/operation.ts'
import type { Backend } from '#shared/backend.ts'
import type { Caller } from '#shared/access/caller.ts'
import { refusal } from '#shared/core/refusal.ts'
import { findOperation } from '#shared/operations/operation-rows.postgres.ts'
import type { OperationState } from '#shared/operations/operations.postgres.ts'

const isFinished = (state: OperationState): boolean => state === 'done' || state === 'failed'

/** Longest a request waits for its queued work before it answers 202. */
export const operationWaitMs = 25_000

/** Whether the client wants the 202 at once: `Prefer: respond-async`. */
export const prefersAsync = (ctx: Context): boolean =>
  /(?:^|[,;\s])respond-async(?:$|[,;\s])/i.test(ctx.get('prefer'))

/**
 * Says in the headers of a 202 where its operation is, and that `Prefer: respond-async` was followed.
 *
 * @param heedsPreference whether the endpoint takes `Prefer`
 */
export function setAcceptedHeaders(ctx: Context, heedsPreference: boolean): void {
  const { operation_id: operation } = (ctx.body ?? {}) as { operation_id?: unknown }
  if (ctx.status !== 202 || typeof operation !== 'string') return
  ctx.set('Location', `/v1/operations/${operation}`)
  if (heedsPreference && prefersAsync(ctx)) ctx.set('Preference-Applied', 'respond-async')
}

/**
 * Answers with the outcome of queued work as if it had been done in the request; with 202 and the
 * operation when it takes longer than 25 s, or when the client prefers that.
 */
export async function sendOperationOutcome(
  ctx: Context,
  { operationWaiter, postgres }: Pick<Backend, 'operationWaiter' | 'postgres'>,
  { account }: Caller,
  operation: string,
): Promise<void> {
  const state = prefersAsync(ctx)
    ? 'accepted'
    : await operationWaiter.waitUntilSettled(account, operation, operationWaitMs)
  const row = isFinished(state)
    ? await findOperation(postgres.query, account, operation)
    : undefined
  if (state === 'cancelled') throw refusal('conflict', 'workCancelled', { operation })
  if (row?.outcome) {
    const { status, body } = presentOperationOutcome(operation, row.outcome)
    ctx.status = status
    ctx.body = body
    return
  }
  if (state === 'failed') {
    ctx.status = 500
    ctx.body = {
      error: 'The work failed on every try; nothing more will be tried',
      hint: `GET /v1/operations/${operation} tells what was done`,
    }
    return
  }
  ctx.status = 202
  ctx.body = {
    status: 'processing',
    operation_id: operation,
    message: `It goes on in the background; GET /v1/operations/${operation} tells how it ends`,
  }
}
