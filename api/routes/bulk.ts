import type { Router } from '@koa/router'
import type { Context } from 'koa'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import type { RequestIdempotency } from '#api/edge/request-idempotency.ts'
import { memoryKey } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { conditionOfQuery, idsMax, idsOrMatching } from '#api/edge/memory-filter.ts'
import { UploadLine, ExportLine } from '#api/contract/contract.ts'
import {
  listIgnored,
  sendInputNotes,
  embeddingModelForRequest,
  resolveSession,
  resolveDryRun,
} from '#api/edge/request.ts'
import { readNdjsonBody, ndjsonLimits, sendNdjson } from '#api/edge/ndjson.ts'
import {
  sendOperationOutcome,
  prefersAsync,
  operationWaitMs,
} from '#api/edge/operation-response.ts'
import {
  requireBalance,
  requirePaymentMethod,
  requireQueueCapacity,
} from '#shared/billing/admission-checks.ts'
import { acceptFile, type IncomingFile } from '#shared/vault/bulk/accept-file.ts'
import {
  refuseExportLine,
  refuseUploadLine,
  requireFutureExpiry,
  resolveLine,
  uploadLineKey,
} from '#shared/vault/bulk/upload-lines.ts'
import type { NumberedLine, UploadedLine } from '#shared/domain/file-types.ts'
import {
  requireStorePermission,
  requireRetrievePermission,
  type Caller,
} from '#shared/access/caller.ts'
import { exportMemories } from '#shared/vault/bulk/export-memories.mongo.ts'
import { presentImport } from '#api/present/operation.ts'
import { dryRunImport } from '#shared/vault/bulk/dry-run.ts'
import { createImportReader } from '#shared/vault/bulk/import-lines.ts'
import { acceptClearing } from '#shared/vault/delete/clear-vault.ts'
import { refusal } from '#shared/core/refusal.ts'
import type { InputNotes } from '#shared/core/lenient-input.ts'
import { acceptAndDelete } from '#shared/vault/delete/delete-memories.ts'
import {
  previewDeletion,
  idsMeeting,
  type DeletionPreview,
} from '#shared/vault/delete/preview-deletion.mongo.ts'
import { acceptReembedding } from '#shared/vault/reembed/reembed.ts'

/** The endpoints of `contract/bulk.md`: files in and out, deletion, another embedding model. */
export function bulk(router: Router, backend: ApiBackend): void {
  // Stores a file of JSON lines; answers when it is stored, or with the operation that stores it.
  endpoint(router, backend, {
    route: 'POST /v1/memory/upload',
    auth: memoryKey(requireStorePermission),
    claims: 'by-handler',
    async handle(request, ctx) {
      const { caller, query, idempotency, notes } = request
      if (!(await idempotency.wasUsed())) requireFileAllowed(caller)
      const operation = await acceptClaimed(ctx, backend, request, {
        kind: 'upload',
        source: readNdjsonBody(ctx),
        limits: ndjsonLimits.upload,
        reader: {
          redaction: caller.keyRow.redaction,
          check(value) {
            refuseExportLine(value)
            const line = resolveLine(UploadLine.check(value, notes))
            requireFutureExpiry(line)
            return line as NumberedLine<UploadedLine>
          },
          keyOf: uploadLineKey,
        },
        session: resolveSession(ctx, query.session_id),
        embeddings: embeddingModelForRequest(ctx, caller, query.embeddings),
        replaces: false,
      })
      await sendOperationOutcome(ctx, backend, caller, operation)
      tellUnused(ctx, notes)
    },
  })

  // Streams a vault as the JSON lines that `POST /v1/memory/import` takes.
  endpoint(router, backend, {
    route: 'GET /v1/memory/export',
    auth: memoryKey(requireRetrievePermission),
    async handle({ caller, query }, ctx) {
      const { vectors, sessions } = query
      const session = resolveSession(ctx, query.session_id)
      const lines = exportMemories(backend, caller.scope, {
        session: session ?? (sessions ? undefined : null),
        condition: conditionOfQuery(query),
        embedder: vectors
          ? await backend.embedders.get(embeddingModelForRequest(ctx, caller, query.embeddings))
          : undefined,
      })
      await sendNdjson(ctx, lines)
    },
  })

  // Restores an exported file; answers when it is restored, or with the operation that restores it.
  endpoint(router, backend, {
    route: 'POST /v1/memory/import',
    auth: memoryKey(requireStorePermission),
    claims: 'by-handler',
    async handle(request, ctx) {
      const { caller, query, idempotency, notes } = request
      const { dry_run: dryRun, on_conflict: onConflict } = query
      if (!dryRun && !(await idempotency.wasUsed())) requireFileAllowed(caller)
      const file = {
        source: readNdjsonBody(ctx),
        limits: ndjsonLimits.import,
        reader: createImportReader(caller.keyRow.redaction, line => {
          refuseUploadLine(line)
          return ExportLine.check(line, notes)
        }),
        replaces: onConflict === 'replace',
      }
      if (dryRun) {
        sendInputNotes(ctx, notes)
        ctx.body = presentImport(await dryRunImport(backend, caller.scope, file), { dryRun: true })
        return
      }
      const operation = await acceptClaimed(ctx, backend, request, {
        ...file,
        kind: 'import',
        session: null,
        embeddings: embeddingModelForRequest(ctx, caller, query.embeddings),
      })
      await sendOperationOutcome(ctx, backend, caller, operation)
      tellUnused(ctx, notes)
    },
  })

  // Clears the whole vault of the key, or one session.
  endpoint(router, backend, {
    route: 'DELETE /v1/memory',
    auth: memoryKey(requireStorePermission),
    claims: 'by-handler',
    async handle({ caller, query, idempotency }, ctx) {
      const { reset } = query
      const session = sessionToClear(ctx, query.session_id)
      if (reset && session !== null) throw refusal('invalid', 'resetOfSession')

      const { operation } = await idempotency.claim(null)
      const awaited = !prefersAsync(ctx)
      await acceptClearing(backend, caller, { operation, session, reset, awaited })
      await sendOperationOutcome(ctx, backend, caller, operation)
    },
  })

  // Removes single memories for good, of any tier, in the core vault and in sessions; or previews that.
  endpoint(router, backend, {
    route: 'POST /v1/memory/delete-ids',
    auth: memoryKey(requireStorePermission),
    async handle({ caller, body, query, claim }, ctx) {
      const isPreview = resolveDryRun(body.dry_run, query.dry_run)
      const { operation } = claim
      const { ids, hasMore } = await idsOrMatching(body, condition =>
        idsMeeting(backend.mongo, caller.scope, condition, idsMax + 1),
      )
      if (isPreview) {
        const preview = presentDeletionPreview(await previewDeletion(backend, caller, ids))
        ctx.body = { ...preview, ...(hasMore !== undefined && { has_more: hasMore }) }
        return
      }
      const waitMs = prefersAsync(ctx) ? 0 : operationWaitMs
      const isDone =
        (await acceptAndDelete(backend, caller, { operation, ids })) ||
        (await backend.operationWaiter.waitUntilSettled(caller.account, operation, waitMs)) ===
          'done'
      // In place of a 202, after which the memories must be invisible.
      if (!isDone) throw refusal('unavailable', 'notYetRemoved', { operation })
      await sendOperationOutcome(ctx, backend, caller, operation)
      // A 202 describes the operation alone.
      if (hasMore !== undefined && ctx.status === 200)
        ctx.body = { ...(ctx.body as object), has_more: hasMore }
    },
  })

  // Gives every memory of the vault a vector of another model; until then both models search it.
  endpoint(router, backend, {
    route: 'POST /v1/memory/reembed',
    auth: memoryKey(requireStorePermission),
    admit: ({ caller }) => requireQueueCapacity(caller),
    async handle({ caller, body, claim }, ctx) {
      const { model } = await backend.embedders.get(body.embeddings)

      const { operation } = claim
      await acceptReembedding(backend, caller, {
        operation,
        model,
        dropPrevious: body.drop_previous,
        awaited: !prefersAsync(ctx),
      })
      await sendOperationOutcome(ctx, backend, caller, operation)
    },
  })
}

type FileClaim = { caller: Caller; idempotency: RequestIdempotency; notes: InputNotes }

/** Accepts a file, whose key is claimed once it has arrived. @returns the operation that stores it */
export const acceptClaimed = (
  ctx: Context,
  backend: ApiBackend,
  { caller, idempotency, notes }: FileClaim,
  file: Omit<IncomingFile, 'awaited' | 'onReceived'>,
): Promise<string> =>
  acceptFile(backend, caller, {
    ...file,
    awaited: !prefersAsync(ctx),
    async onReceived(requestHash) {
      sendInputNotes(ctx, notes)
      const claim = await idempotency.claim(requestHash)
      if (claim.isFirstAttempt) requireFileAllowed(caller)
      return claim.operation
    },
  })

export function requireFileAllowed(caller: Caller): void {
  requireQueueCapacity(caller)
  requirePaymentMethod(caller)
  requireBalance(caller)
}

/**
 * The session to clear; null: the whole vault. A request that seems to mean a session but names none is refused.
 *
 * @throws Refusal `invalid` for an empty header.
 */
function sessionToClear(ctx: Context, inQuery: string | undefined): string | null {
  const named = ctx.req.headers['x-session-id'] !== undefined
  const session = resolveSession(ctx, inQuery)
  if (named && session === null) throw refusal('invalid', 'emptySessionId')
  return session
}

const presentDeletionPreview = ({ requested, ids, ...preview }: DeletionPreview) => ({
  dry_run: true,
  requested,
  count: ids.length,
  ids,
  not_found: requested - ids.length,
  estimated_tokens: preview.tokens,
  sources_released: preview.sourcesReleased,
  reflections_left: preview.reflectionsLeft,
})

/** Says in the message too which fields of lines were not used: `date` or `session_id` may have been meant to count. */
function tellUnused(ctx: Context, { ignored }: InputNotes): void {
  const body = ctx.body as { message?: string }
  if (ignored.size > 0 && body.message !== undefined)
    body.message += `. Not used: ${listIgnored(ignored)}`
}
