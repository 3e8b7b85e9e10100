import type { Router } from '@koa/router'
import { ExportLine, ImportVaultQuery } from '#api/contract/contract.ts'
import {
  isFirstAttempt,
  claimIdempotencyKey,
  hasUsedIdempotencyKey,
  operationId,
} from '#api/edge/idempotency.ts'
import { readNdjsonBody, ndjsonLimits } from '#api/edge/ndjson.ts'
import { sendOperationOutcome, prefersAsync } from '#api/edge/operation-response.ts'
import { authenticateRequest, embeddingModelForRequest, parseQuery } from '#api/edge/request.ts'
import {
  requireBalance,
  requirePaymentMethod,
  requireQueueCapacity,
} from '#shared/billing/admission-checks.ts'
import type { Backend } from '#shared/backend.ts'
import { acceptFile } from '#shared/vault/bulk/accept-file.ts'
import { dryRunImport } from '#shared/vault/bulk/dry-run.ts'
import { createImportReader } from '#shared/vault/bulk/import-lines.ts'
import { requireStorePermission } from '#shared/access/caller.ts'

/** Restores an exported file; answers when it is restored, or with the operation that restores it. */
export function importVault(router: Router, backend: Backend): void {
  router.post('/v1/memory/import', async ctx => {
    const caller = await authenticateRequest(ctx, backend)
    requireStorePermission(caller)
    const requireCanStore = (): void => {
      requireQueueCapacity(caller)
      requirePaymentMethod(caller)
      requireBalance(caller)
    }
    if (!(await hasUsedIdempotencyKey(ctx))) requireCanStore()
    const { dry_run: dryRun, on_conflict: onConflict } = parseQuery(ctx, ImportVaultQuery)
    const file = {
      source: readNdjsonBody(ctx),
      limits: ndjsonLimits.import,
      reader: createImportReader(caller.keyRow.redaction, line => ExportLine.check(line)),
      replaces: onConflict === 'replace',
    }
    if (dryRun) {
      ctx.body = await dryRunImport(backend, caller.scope, file)
      return
    }
    const operation = await acceptFile(backend, caller, {
      ...file,
      kind: 'import',
      session: null,
      embeddings: embeddingModelForRequest(ctx),
      awaited: !prefersAsync(ctx),
      async onReceived(askedHash) {
        await claimIdempotencyKey(ctx, askedHash)
        if (isFirstAttempt(ctx)) requireCanStore()
        return operationId(ctx)
      },
    })
    await sendOperationOutcome(ctx, backend, caller, operation)
  })
}
