import type { Router } from '@koa/router'
import { IngestBody, IngestQuery } from '#api/contract/contract.ts'
import { asksAnew, operationOf } from '#api/edge/idempotency.ts'
import { presentDebt } from '#api/present/debt.ts'
import { bodyOf, callerOf, embeddingsOf, queryOf, sessionOf } from '#api/edge/request.ts'
import { requireBalance, requireRoom } from '#shared/billing/requirements.ts'
import type { Backend } from '#shared/backend.ts'
import { requireStore } from '#shared/access/caller.ts'
import { askedEnd } from '#shared/domain/expiry.ts'
import { acceptExchange } from '#shared/vault/ingest/ingest.ts'
import { findKey } from '#shared/access/keys.postgres.ts'
import { qualifiedName } from '#shared/models/resolve-model.ts'
import { debtOf } from '#shared/vault/consolidate/debt.ts'

/** Longest a request with `wait=true` waits for its exchange to be stored. */
const waitMs = 25_000

/** Accepts a finished exchange; it is stored in the background, or with `wait=true` before the answer. */
export function ingest(router: Router, backend: Backend): void {
  router.post('/v1/memory/ingest', async ctx => {
    const caller = await callerOf(ctx, backend)
    requireStore(caller)
    const { wait } = queryOf(ctx, IngestQuery)
    const body = await bodyOf(ctx, IngestBody, 'large')
    if (asksAnew(ctx)) {
      requireRoom(caller)
      requireBalance(caller)
    }

    const operation = operationOf(ctx)
    const accepted = await acceptExchange(backend, caller, {
      operation,
      session: sessionOf(ctx, body.session_id),
      messages: body.messages,
      model: body.model === undefined ? null : qualifiedName(body.model),
      embeddings: embeddingsOf(ctx, body.embeddings),
      awaited: wait,
      expiresAt: askedEnd(body.expires_at, backend.now()),
    })
    const { userTokens, assistantTokens } = accepted
    const stored =
      wait && (await backend.operations.settled(caller.account, operation, waitMs)) === 'done'
    // What has been stored is in the debt by now.
    const row = stored ? await findKey(backend.postgres.query, caller.keyHash) : undefined

    ctx.status = stored ? 200 : 202
    ctx.body = {
      accepted: true,
      queued: !stored,
      operation_id: operation,
      retrieval_tokens: userTokens,
      response_tokens: assistantTokens,
      message: stored
        ? `Stored ${counted(accepted.memories)}`
        : `Accepted; ${counted(accepted.memories)} will be stored in the background`,
      reflection: presentDebt(debtOf(row ?? caller.row)),
    }
  })
}

const counted = (memories: number): string => (memories === 1 ? '1 memory' : `${memories} memories`)
