import type { Router } from '@koa/router'
import { ExportLine, ImportVaultQuery } from '#api/contract/contract.ts'
import { asksAnew, claimed, isSentAgain, operationOf } from '#api/edge/idempotency.ts'
import { fileIn, fileLimits } from '#api/edge/lines.ts'
import { answerQueued, respondsAsync } from '#api/edge/queued.ts'
import { callerOf, embeddingsOf, queryOf } from '#api/edge/request.ts'
import { requireBalance, requirePaymentMethod, requireRoom } from '#shared/billing/requirements.ts'
import type { Backend } from '#shared/backend.ts'
import { acceptFile } from '#shared/vault/bulk/accept.ts'
import { dryRunImport } from '#shared/vault/bulk/dry-run.ts'
import { importReader } from '#shared/vault/bulk/import.ts'
import { requireStore } from '#shared/access/caller.ts'

/** Restores an exported file; answers when it is restored, or with the operation that restores it. */
export function importVault(router: Router, backend: Backend): void {
  router.post('/v1/memory/import', async ctx => {
    const caller = await callerOf(ctx, backend)
    requireStore(caller)
    const requireStanding = (): void => {
      requireRoom(caller)
      requirePaymentMethod(caller)
      requireBalance(caller)
    }
    if (!(await isSentAgain(ctx))) requireStanding()
    const { dry_run: dryRun, on_conflict: onConflict } = queryOf(ctx, ImportVaultQuery)
    const file = {
      source: fileIn(ctx),
      limits: fileLimits.import,
      reader: importReader(caller.row.redaction, line => ExportLine.check(line)),
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
      embeddings: embeddingsOf(ctx),
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
