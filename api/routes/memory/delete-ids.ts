import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { memoryKey } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import type { Context } from 'koa'
import { sendOperationOutcome, operationWaitMs, prefersAsync } from '#api/edge/operation-response.ts'
import { resolveDryRun } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { acceptAndDelete } from '#shared/vault/delete/delete-memories.ts'
import { previewDeletion, type DeletionPreview, idsWithMetadata } from '#shared/vault/delete/preview-deletion.mongo.ts'
import { parseMetadataFilter } from '#shared/domain/metadata.ts'
import { Refusal } from '#shared/core/errors.ts'
import { requireStorePermission, type Caller } from '#shared/access/caller.ts'
import type { OperationState } from '#shared/operations/operations.postgres.ts'

/** Removes single memories for good, of any tier, in the core vault and in sessions; or previews that. */
export function deleteIds(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'POST /v1/memory/delete-ids',
    auth: memoryKey(requireStorePermission),
    async handle({ caller, body, query, claim }, ctx) {
      const isPreview = resolveDryRun(body.dry_run, query.dry_run)
      const { operation } = claim
      const { ids, hasMore } = await idsToDelete(backend, caller, body)
      if (isPreview) {
        const preview = presentDeletionPreview(await previewDeletion(backend, caller, ids))
        ctx.body = { ...preview, ...(hasMore !== undefined && { has_more: hasMore }) }
        return
      }
      const isDone = await acceptAndDelete(backend, caller, { operation, ids })
      const state = isDone ? 'done' : await awaitOperationState(ctx, backend, caller, operation)
      if (state !== 'done') throw notRemovedYet(operation)
      await sendOperationOutcome(ctx, backend, caller, operation)
      // A 202 tells of the operation alone.
      if (hasMore !== undefined && ctx.status === 200)
        ctx.body = { ...(ctx.body as object), has_more: hasMore }
    },
  })
}

const presentDeletionPreview = ({
  requested,
  ids,
  tokens,
  sourcesReleased,
  reflectionsLeft,
}: DeletionPreview) => ({
  dry_run: true,
  requested,
  count: ids.length,
  ids,
  not_found: requested - ids.length,
  estimated_tokens: tokens,
  sources_released: sourcesReleased,
  reflections_left: reflectionsLeft,
})

const idsMax = 500

/** The ids that a request names, or the first 500 of memories with its metadata. */
async function idsToDelete(
  { mongo }: Pick<Backend, 'mongo'>,
  { scope }: Caller,
  { ids, metadata }: { ids?: string[]; metadata?: Record<string, unknown> },
): Promise<{ ids: string[]; hasMore?: boolean }> {
  const filter = parseMetadataFilter(metadata)
  if ((ids === undefined) === (filter === undefined)) {
    throw new Refusal(
      'invalid',
      'The body must have either ids or metadata',
      'Name up to 500 memories by ids, or those to delete by metadata, such as {"metadata":{"run_id":"r-7"}}',
    )
  }
  if (ids) return { ids }
  const found = await idsWithMetadata(mongo, scope, filter!, idsMax + 1)
  return { ids: found.slice(0, idsMax), hasMore: found.length > idsMax }
}

/** The state of the operation once its job has run, or after 25 s; at once with `Prefer: respond-async`. */
const awaitOperationState = (
  ctx: Context,
  { operationWaiter }: Pick<Backend, 'operationWaiter'>,
  { account }: Caller,
  operation: string,
): Promise<OperationState> =>
  operationWaiter.waitUntilSettled(account, operation, prefersAsync(ctx) ? 0 : operationWaitMs)

/** No 202: a client that gets one relies on it that the memories cannot be seen any more. */
const notRemovedYet = (operation: string): Refusal =>
  new Refusal(
    'unavailable',
    'The memories could not be removed yet',
    `It will be done as soon as it can be; GET /v1/operations/${operation} tells when`,
  )
