import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { memoryKey } from '#api/edge/auth.ts'
import { clientSignal } from '#api/edge/client-signal.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { sendOperationOutcome, prefersAsync } from '#api/edge/operation-response.ts'
import {
  embeddingModelForRequest,
  requestedEmbeddingModel,
  resolveDryRun,
} from '#api/edge/request.ts'
import { requireBalance } from '#shared/billing/admission-checks.ts'
import { acceptCopy, resolveDestination } from '#shared/vault/copy/accept.ts'
import {
  transferCandidates,
  compareByEventTime,
  graftCandidates,
} from '#shared/vault/copy/candidates.ts'
import { requireRetrievePermission } from '#shared/access/caller.ts'
import { conditionOf } from '#shared/domain/filter.ts'
import type { Memory } from '#shared/domain/memory.ts'

/** The endpoints of `contract/copies.md`. */
export function copies(router: Router, backend: ApiBackend): void {
  // Copies the raw core memories of the key's vault to the vault of another key, or previews it.
  endpoint(router, backend, {
    route: 'POST /v1/memory/transfer',
    auth: memoryKey(requireRetrievePermission),
    admit: ({ caller }) => requireBalance(caller),
    async handle({ caller, body, query, claim }, ctx) {
      const named = [body.embeddings, query.embeddings]
      const destination = await resolveDestination(backend, caller, body.destination_key)
      const embedder = await backend.embedders.get(embeddingModelForRequest(ctx, caller, ...named))
      const model =
        requestedEmbeddingModel(ctx, ...named) ?? destination.embeddings ?? embedder.model
      const memories = await transferCandidates(backend, caller, embedder, conditionOf(body))

      if (resolveDryRun(body.dry_run, query.dry_run)) {
        ctx.body = {
          dry_run: true,
          operation: 'transfer',
          source_key: caller.maskedKey,
          destination_key: destination.key,
          count: memories.length,
          estimated_tokens: memories.reduce((sum, { tokens }) => sum + tokens, 0),
          memories: memories.map(presentCopyCandidate),
        }
        return
      }
      const { operation } = claim
      await acceptCopy(backend, caller, {
        operation,
        kind: 'transfer',
        destination,
        model,
        ids: memories.map(({ id }) => id),
        graftQuery: null,
        awaited: !prefersAsync(ctx),
      })
      await sendOperationOutcome(ctx, backend, caller, operation)
    },
  })

  // Copies what matches the queries to the vault of another key, or previews it.
  endpoint(router, backend, {
    route: 'POST /v1/memory/graft',
    auth: memoryKey(requireRetrievePermission),
    admit: ({ caller }) => requireBalance(caller),
    async handle({ caller, body, query, claim }, ctx) {
      const { queries, threshold } = body
      const named = [body.embeddings, query.embeddings]
      const destination = await resolveDestination(backend, caller, body.destination_key)
      const embedder = await backend.embedders.get(embeddingModelForRequest(ctx, caller, ...named))
      const model =
        requestedEmbeddingModel(ctx, ...named) ?? destination.embeddings ?? embedder.model
      const signal = clientSignal(ctx)
      const question = { embedder, queries, threshold, condition: conditionOf(body), signal }
      const matches = await graftCandidates(backend, caller, question)

      if (resolveDryRun(body.dry_run, query.dry_run)) {
        ctx.body = {
          dry_run: true,
          operation: 'graft',
          source_key: caller.maskedKey,
          destination_key: destination.key,
          queries,
          threshold,
          count: matches.length,
          estimated_tokens: matches.reduce((sum, { memory }) => sum + memory.tokens, 0),
          memories: matches.map(({ memory, score }) => ({
            ...presentCopyCandidate(memory),
            score,
          })),
        }
        return
      }
      const { operation } = claim
      const memories = matches.map(({ memory }) => memory).sort(compareByEventTime)
      await acceptCopy(backend, caller, {
        operation,
        kind: 'graft',
        destination,
        model,
        ids: memories.map(({ id }) => id),
        graftQuery: { queries, threshold },
        awaited: !prefersAsync(ctx),
      })
      await sendOperationOutcome(ctx, backend, caller, operation)
    },
  })
}

const snippetCharacters = 160

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' })

/** A memory that would be copied. */
const presentCopyCandidate = ({ id, text, role, at, tokens }: Memory) => ({
  id,
  snippet: makeSnippet(text),
  role,
  timestamp: at,
  estimated_tokens: tokens,
})

/** The beginning of a text on one line, never cut inside a character as people see it. */
function makeSnippet(text: string): string {
  const line = text
    .slice(0, snippetCharacters * 8)
    .replaceAll(/\s+/gu, ' ')
    .trim()
  if (line.length <= snippetCharacters) return line
  let snippet = ''
  for (const { segment } of graphemes.segment(line)) {
    if (snippet.length + segment.length > snippetCharacters) break
    snippet += segment
  }
  return `${snippet.trimEnd()}…`
}
