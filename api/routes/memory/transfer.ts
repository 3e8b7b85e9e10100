import type { Router } from '@koa/router'
import { TransferBody } from '#api/contract/contract.ts'
import { asksAnew, operationOf } from '#api/edge/idempotency.ts'
import { presentCandidate } from '#api/present/copy.ts'
import { answerQueued, respondsAsync } from '#api/edge/queued.ts'
import { bodyOf, callerOf, embeddingsOf, namedEmbeddings } from '#api/edge/request.ts'
import { requireBalance } from '#shared/billing/requirements.ts'
import type { Backend } from '#shared/backend.ts'
import { acceptCopy } from '#shared/vault/copy/accept.ts'
import { transferCandidates } from '#shared/vault/copy/candidates.ts'
import { destinationOf } from '#shared/vault/copy/destination.ts'
import { requireRetrieve } from '#shared/access/caller.ts'

/** Copies the raw core memories of the key's vault to the vault of another key, or previews it. */
export function transfer(router: Router, backend: Backend): void {
  router.post('/v1/memory/transfer', async ctx => {
    const caller = await callerOf(ctx, backend)
    requireRetrieve(caller)
    const body = await bodyOf(ctx, TransferBody)
    if (asksAnew(ctx)) requireBalance(caller)
    const destination = await destinationOf(backend, caller, body.destination_key)
    const embedder = await backend.embedders.get(embeddingsOf(ctx, body.embeddings))
    const memories = await transferCandidates(backend, caller, embedder)

    if (body.dry_run === true) {
      ctx.body = {
        dry_run: true,
        operation: 'transfer',
        source_key: caller.maskedKey,
        destination_key: destination.key,
        count: memories.length,
        estimated_tokens: memories.reduce((sum, { tokens }) => sum + tokens, 0),
        memories: memories.map(presentCandidate),
      }
      return
    }
    const operation = operationOf(ctx)
    await acceptCopy(backend, caller, {
      operation,
      kind: 'transfer',
      destination,
      model: namedEmbeddings(ctx, body.embeddings) ?? destination.embeddings ?? embedder.model,
      ids: memories.map(({ id }) => id),
      asked: null,
      awaited: !respondsAsync(ctx),
    })
    await answerQueued(ctx, backend, caller, operation)
  })
}
