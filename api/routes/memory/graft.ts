import type { Router } from '@koa/router'
import { GraftBody } from '#api/contract/contract.ts'
import { asksAnew, operationOf } from '#api/edge/idempotency.ts'
import { presentCandidate } from '#api/present/copy.ts'
import { answerQueued, respondsAsync } from '#api/edge/queued.ts'
import { bodyOf, callerOf, embeddingsOf, namedEmbeddings } from '#api/edge/request.ts'
import { requireBalance } from '#shared/billing/requirements.ts'
import type { Backend } from '#shared/backend.ts'
import { acceptCopy } from '#shared/vault/copy/accept.ts'
import { byTime, graftCandidates } from '#shared/vault/copy/candidates.ts'
import { destinationOf } from '#shared/vault/copy/destination.ts'
import { requireRetrieve } from '#shared/access/caller.ts'

/** Copies what matches the queries to the vault of another key, or previews it. */
export function graft(router: Router, backend: Backend): void {
  router.post('/v1/memory/graft', async ctx => {
    const caller = await callerOf(ctx, backend)
    requireRetrieve(caller)
    const body = await bodyOf(ctx, GraftBody)
    if (asksAnew(ctx)) requireBalance(caller)
    const { queries, threshold } = body
    const destination = await destinationOf(backend, caller, body.destination_key)
    const embedder = await backend.embedders.get(embeddingsOf(ctx, body.embeddings))
    const matches = await graftCandidates(backend, caller, { embedder, queries, threshold })

    if (body.dry_run === true) {
      ctx.body = {
        dry_run: true,
        operation: 'graft',
        source_key: caller.maskedKey,
        destination_key: destination.key,
        queries,
        threshold,
        count: matches.length,
        estimated_tokens: matches.reduce((sum, { memory }) => sum + memory.tokens, 0),
        memories: matches.map(({ memory, score }) => ({ ...presentCandidate(memory), score })),
      }
      return
    }
    const operation = operationOf(ctx)
    const memories = matches.map(({ memory }) => memory).sort(byTime)
    await acceptCopy(backend, caller, {
      operation,
      kind: 'graft',
      destination,
      model: namedEmbeddings(ctx, body.embeddings) ?? destination.embeddings ?? embedder.model,
      ids: memories.map(({ id }) => id),
      asked: { queries, threshold },
      awaited: !respondsAsync(ctx),
    })
    await answerQueued(ctx, backend, caller, operation)
  })
}
