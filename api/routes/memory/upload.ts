import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { memoryKey } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { UploadLine } from '#api/contract/contract.ts'
import { sendInputNotes } from '#api/edge/input-notes.ts'
import { readNdjsonBody, ndjsonLimits } from '#api/edge/ndjson.ts'
import { sendOperationOutcome, prefersAsync } from '#api/edge/operation-response.ts'
import { embeddingModelForRequest, resolveSession } from '#api/edge/request.ts'
import { requireBalance, requirePaymentMethod, requireQueueCapacity } from '#shared/billing/admission-checks.ts'
import { acceptFile } from '#shared/vault/bulk/accept-file.ts'
import { refuseExportLine, requireFutureExpiry, resolveLine, uploadLineKey } from '#shared/vault/bulk/upload-lines.ts'
import type { NumberedLine, UploadedLine } from '#shared/domain/file-types.ts'
import { requireStorePermission } from '#shared/access/caller.ts'

/** Stores a file of JSON lines; answers when it is stored, or with the operation that stores it. */
export function upload(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'POST /v1/memory/upload',
    auth: memoryKey(requireStorePermission),
    claims: 'by-handler',
    async handle({ caller, query, idempotency, notes }, ctx) {
      const requireCanStore = (): void => {
        requireQueueCapacity(caller)
        requirePaymentMethod(caller)
        requireBalance(caller)
      }
      if (!(await idempotency.wasUsed())) requireCanStore()
      const operation = await acceptFile(backend, caller, {
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
