import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { memoryKey } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { ExportLine } from '#api/contract/contract.ts'
import { sendInputNotes } from '#api/edge/input-notes.ts'
import { readNdjsonBody, ndjsonLimits } from '#api/edge/ndjson.ts'
import { sendOperationOutcome, prefersAsync } from '#api/edge/operation-response.ts'
import { embeddingModelForRequest } from '#api/edge/request.ts'
import { presentImport } from '#api/present/bulk-file.ts'
import { requireBalance, requirePaymentMethod, requireQueueCapacity } from '#shared/billing/admission-checks.ts'
import { acceptFile } from '#shared/vault/bulk/accept-file.ts'
import { dryRunImport } from '#shared/vault/bulk/dry-run.ts'
import { refuseUploadLine } from '#shared/vault/bulk/upload-lines.ts'
import { createImportReader } from '#shared/vault/bulk/import-lines.ts'
import { requireStorePermission } from '#shared/access/caller.ts'

/** Restores an exported file; answers when it is restored, or with the operation that restores it. */
export function importVault(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'POST /v1/memory/import',
    auth: memoryKey(requireStorePermission),
    claims: 'by-handler',
    async handle({ caller, query, idempotency, notes }, ctx) {
      const requireCanStore = (): void => {
        requireQueueCapacity(caller)
        requirePaymentMethod(caller)
        requireBalance(caller)
      }
      const { dry_run: dryRun, on_conflict: onConflict } = query
      if (!dryRun && !(await idempotency.wasUsed())) requireCanStore()
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
      const operation = await acceptFile(backend, caller, {
        ...file,
        kind: 'import',
        session: null,
        embeddings: embeddingModelForRequest(ctx, caller, query.embeddings),
        awaited: !prefersAsync(ctx),
        async onReceived(requestHash) {
          sendInputNotes(ctx, notes)
          const claim = await idempotency.claim(requestHash)
          if (claim.isFirstAttempt) requireCanStore()
          return claim.operation
        },
      })
      await sendOperationOutcome(ctx, backend, caller, operation)
    },
  })
}
