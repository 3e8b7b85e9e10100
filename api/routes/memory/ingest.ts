import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { memoryKey } from '#api/edge/auth.ts'
import { releaseBody } from '#api/edge/body-budget.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { presentDebt } from '#api/present/debt.ts'
import { embeddingModelForRequest } from '#api/edge/request.ts'
import { resolveSessionSpace } from '#api/edge/session-space.ts'
import { parseShareHeader, resolveStoredHalves } from '#api/proxy/switches.ts'
import { requireBalance, requireQueueCapacity } from '#shared/billing/admission-checks.ts'
import { whyNotStored } from '#shared/access/caller.ts'
import { withContent } from '#shared/domain/message-content.ts'
import { parseMetadata } from '#shared/domain/metadata.ts'
import { parseExpiresAt } from '#shared/domain/expiry.ts'
import { acceptExchange } from '#shared/vault/ingest/ingest.ts'
import { findKey } from '#shared/access/key-row.postgres.ts'
import { qualifiedName } from '#shared/models/resolve-model.ts'
import { reflectionDebt } from '#shared/vault/consolidate/debt.ts'

/** Longest a request with `wait=true` waits for its exchange to be stored. */
const waitMs = 25_000

/** Accepts a finished exchange; it is stored in the background, or with `wait=true` before the answer. */
export function ingest(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'POST /v1/memory/ingest',
    auth: memoryKey(),
    admit: ({ caller }) => {
      if (!caller.permissions.store) return
      requireQueueCapacity(caller)
      requireBalance(caller)
    },
    async handle({ caller, query, body, claim }, ctx) {
      const { wait } = query

      const { operation } = claim
      const exchange = {
        operation,
        session: resolveSessionSpace(ctx, { inBody: body.session_id, query }).session,
        messages: body.messages.map(withContent),
        model: body.model === undefined ? null : qualifiedName(body.model),
        embeddings: embeddingModelForRequest(ctx, caller, body.embeddings, query.embeddings),
        awaited: wait,
        expiresAt: parseExpiresAt(body.expires_at, backend.now()),
        metadata: parseMetadata(body.metadata),
        shares: body.share && parseShareHeader(ctx) !== false,
        stores: resolveStoredHalves(ctx, body, caller.keyRow.storage),
      }
      const accepted = caller.permissions.store
        ? await acceptExchange(backend, caller, exchange)
        : nothingAccepted
      const { userTokens, assistantTokens, memories } = accepted
      releaseBody(ctx)
      const stored =
        wait &&
        memories > 0 &&
        (await backend.operationWaiter.waitUntilSettled(caller.account, operation, waitMs)) ===
          'done'
      // The stored memories count in the debt by now.
      const row = stored ? await findKey(backend.postgres.query, caller.keyHash) : undefined

      ctx.status = stored ? 200 : 202
      ctx.body = {
        accepted: memories > 0,
        queued: memories > 0 && !stored,
        operation_id: operation,
        retrieval_tokens: userTokens,
        response_tokens: assistantTokens,
        left_out: accepted.leftOut,
        message: caller.permissions.store
          ? describeOutcome(memories, stored)
          : whyNotStored(caller)[0],
        reflection: presentDebt(reflectionDebt(row ?? caller.keyRow)),
      }
    },
  })
}

/** For a key that may not store. */
const nothingAccepted = { userTokens: 0, assistantTokens: 0, memories: 0, leftOut: {} } as const

function describeOutcome(memories: number, stored: boolean): string {
  if (memories === 0) return 'Nothing of it is to be stored'
  const count = formatMemoryCount(memories)
  return stored ? `Stored ${count}` : `Accepted; ${count} will be stored in the background`
}

const formatMemoryCount = (memories: number): string =>
  memories === 1 ? '1 memory' : `${memories} memories`
