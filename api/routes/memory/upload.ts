import type { Router } from '@koa/router'
import { UploadLine } from '#api/contract/contract.ts'
import { asksAnew, claimed, isSentAgain, operationOf } from '#api/edge/idempotency.ts'
import { fileIn, fileLimits } from '#api/edge/lines.ts'
import { answerQueued, respondsAsync } from '#api/edge/queued.ts'
import { callerOf, embeddingsOf, sessionOf } from '#api/edge/request.ts'
import { requireBalance, requirePaymentMethod, requireRoom } from '#shared/billing/requirements.ts'
import type { Backend } from '#shared/backend.ts'
import { acceptFile } from '#shared/vault/bulk/accept.ts'
import type { StagedLine } from '#shared/domain/file-lines.ts'
import { requireFuture, sameUploadKey } from '#shared/vault/bulk/upload.ts'
import { requireStore } from '#shared/access/caller.ts'

/** Stores a file of JSON lines; answers when it is stored, or with the operation that stores it. */
export function upload(router: Router, backend: Backend): void {
  router.post('/v1/memory/upload', async ctx => {
    const caller = await callerOf(ctx, backend)
    requireStore(caller)
    const requireStanding = (): void => {
      requireRoom(caller)
      requirePaymentMethod(caller)
      requireBalance(caller)
    }
    if (!(await isSentAgain(ctx))) requireStanding()
    const operation = await acceptFile(backend, caller, {
      kind: 'upload',
      source: fileIn(ctx),
      limits: fileLimits.upload,
      reader: {
        redaction: caller.row.redaction,
        check(value) {
          const line = UploadLine.check(value) as StagedLine
          requireFuture(line)
          return line
        },
        keyOf: sameUploadKey,
      },
      session: sessionOf(ctx),
      embeddings: embeddingsOf(ctx),
      replaces: false,
      awaited: !respondsAsync(ctx),
      async arrived(askedHash) {
        await claimed(ctx, askedHash)
        if (asksAnew(ctx)) requireStanding()
        return operationOf(ctx)
      },
    })
    await answerQueued(ctx, backend, caller, operation)
  })
}
