import type { Router } from '@koa/router'
import { IngestBody, IngestQuery } from '#api/contract/contract.ts'
import { isFirstAttempt, operationId } from '#api/edge/idempotency.ts'
import { presentDebt } from '#api/present/debt.ts'
import {
  parseBody,
  authenticateRequest,
  embeddingModelForRequest,
  parseQuery,
  resolveSession,
} from '#api/edge/request.ts'
import { requireBalance, requireQueueCapacity } from '#shared/billing/admission-checks.ts'
import type { Backend } from '#shared/backend.ts'
import { requireStorePermission } from '#shared/access/caller.ts'
import { parseExpiresAt } from '#shared/domain/expiry.ts'
import { acceptExchange } from '#shared/vault/ingest/ingest.ts'
import { findKey } from '#shared/access/memory-keys.postgres.ts'
import { qualifiedName } from '#shared/models/resolve-model.ts'
import { reflectionDebt } from '#shared/vault/consolidate/debt.ts'

/** Longest a request with `wait=true` waits for its exchange to be stored. */
const waitMs = 25_000

/** Accepts a finished exchange; it is stored in the background, or with `wait=true` before the answer. */
export function ingest(router: Router, backend: Backend): void {
  router.post('/v1/memory/ingest', async ctx => {
    const caller = await authenticateRequest(ctx, backend)
    requireStorePermission(caller)
    const { wait } = parseQuery(ctx, IngestQuery)
    const body = await parseBody(ctx, IngestBody, 'large')
    if (isFirstAttempt(ctx)) {
      requireQueueCapacity(caller)
      requireBalance(caller)
    }

    const operation = operationId(ctx)
    const accepted = await acceptExchange(backend, caller, {
      operation,
      session: resolveSession(ctx, body.session_id),
      messages: body.messages,
      model: body.model === undefined ? null : qualifiedName(body.model),
      embeddings: embeddingModelForRequest(ctx, body.embeddings),
      awaited: wait,
      expiresAt: parseExpiresAt(body.expires_at, backend.now()),
    })
    const { userTokens, assistantTokens } = accepted
    const stored =
      wait &&
      (await backend.operationWaiter.waitUntilSettled(caller.account, operation, waitMs)) === 'done'
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
        ? `Stored ${formatMemoryCount(accepted.memories)}`
        : `Accepted; ${formatMemoryCount(accepted.memories)} will be stored in the background`,
      reflection: presentDebt(reflectionDebt(row ?? caller.keyRow)),
    }
  })
}

const formatMemoryCount = (memories: number): string =>
  memories === 1 ? '1 memory' : `${memories} memories`
