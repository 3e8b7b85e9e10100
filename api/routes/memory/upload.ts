import type { Router } from '@koa/router'
import { UploadLine } from '#api/contract/contract.ts'
import {
  isFirstAttempt,
  claimIdempotencyKey,
  hasUsedIdempotencyKey,
  operationId,
} from '#api/edge/idempotency.ts'
import { readNdjsonBody, ndjsonLimits } from '#api/edge/ndjson.ts'
import { sendOperationOutcome, prefersAsync } from '#api/edge/operation-response.ts'
import { authenticateRequest, embeddingModelForRequest, resolveSession } from '#api/edge/request.ts'
import {
  requireBalance,
  requirePaymentMethod,
  requireQueueCapacity,
} from '#shared/billing/admission-checks.ts'
import type { Backend } from '#shared/backend.ts'
import { acceptFile } from '#shared/vault/bulk/accept-file.ts'
import type { StagedLine } from '#shared/domain/file-types.ts'
import { requireFutureExpiry, uploadLineKey } from '#shared/vault/bulk/upload-lines.ts'
import { requireStorePermission } from '#shared/access/caller.ts'

/** Stores a file of JSON lines; answers when it is stored, or with the operation that stores it. */
export function upload(router: Router, backend: Backend): void {
  router.post('/v1/memory/upload', async ctx => {
    const caller = await authenticateRequest(ctx, backend)
    requireStorePermission(caller)
    const requireCanStore = (): void => {
      requireQueueCapacity(caller)
      requirePaymentMethod(caller)
      requireBalance(caller)
    }
    if (!(await hasUsedIdempotencyKey(ctx))) requireCanStore()
    const operation = await acceptFile(backend, caller, {
      kind: 'upload',
      source: readNdjsonBody(ctx),
      limits: ndjsonLimits.upload,
      reader: {
        redaction: caller.keyRow.redaction,
        check(value) {
          const line = UploadLine.check(value) as StagedLine
          requireFutureExpiry(line)
          return line
        },
        keyOf: uploadLineKey,
      },
      session: resolveSession(ctx),
      embeddings: embeddingModelForRequest(ctx),
      replaces: false,
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
