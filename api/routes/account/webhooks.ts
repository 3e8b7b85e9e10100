import type { Router } from '@koa/router'
import type { Context } from 'koa'
import { authenticateOwnerAccount, withActor, authenticateOwner } from '#api/edge/owner-auth.ts'
import {
  ChangeWebhookBody,
  CreateWebhookBody,
  ListWebhookDeliveriesQuery,
} from '#api/contract/contract.ts'
import { claimIdempotencyKey, operationId } from '#api/edge/idempotency.ts'
import { presentDelivery, presentWebhook } from '#api/present/webhook.ts'
import { parseBody, parseQuery } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { isUuid } from '#shared/core/ids.ts'
import { listDeliveries } from '#shared/webhooks/deliveries.postgres.ts'
import { deleteWebhook, listWebhooks } from '#shared/webhooks/webhooks.postgres.ts'
import {
  changeWebhook,
  createWebhook,
  webhookNotFound,
  renewSecret,
  replayToWebhook,
  sendTest,
  requireWebhook,
} from '#shared/webhooks/webhook.ts'

/** Addresses that an account wants to be told at, and what they were told. */
export function webhooks(router: Router, backend: Backend): void {
  const path = '/v1/account/webhooks'
  const webhookPath = `${path}/:webhookId`
  const { query } = backend.postgres

  router.post(path, async ctx => {
    const owner = await authenticateOwner(ctx, backend)
    const { url, events, description = '' } = await parseBody(ctx, CreateWebhookBody)
    const fields = { url, events, description }
    const actorBackend = withActor(backend, owner)
    const { webhook, secret } = await createWebhook(
      actorBackend,
      owner.account,
      operationId(ctx),
      fields,
    )
    ctx.status = 201
    ctx.body = { ...presentWebhook(webhook), secret }
  })

  router.get(path, async ctx => {
    const rows = await listWebhooks(query, await authenticateOwnerAccount(ctx, backend))
    ctx.body = { webhooks: rows.map(presentWebhook) }
  })

  router.get(webhookPath, async ctx => {
    const account = await authenticateOwnerAccount(ctx, backend)
    ctx.body = presentWebhook(await requireWebhook(query, account, webhookIdParam(ctx)))
  })

  router.patch(webhookPath, async ctx => {
    const owner = await authenticateOwner(ctx, backend)
    const change = await parseBody(ctx, ChangeWebhookBody)
    const actorBackend = withActor(backend, owner)
    ctx.body = presentWebhook(
      await changeWebhook(actorBackend, owner.account, webhookIdParam(ctx), change),
    )
  })

  router.delete(webhookPath, async ctx => {
    const owner = await authenticateOwner(ctx, backend)
    const id = webhookIdParam(ctx)
    await claimIdempotencyKey(ctx, null)
    const actorBackend = withActor(backend, owner).postgres
    if (!isUuid(id) || !(await deleteWebhook(actorBackend.query, owner.account, id)))
      throw webhookNotFound()
    ctx.body = { deleted: true, id }
  })

  router.post(`${webhookPath}/secret`, async ctx => {
    const owner = await authenticateOwner(ctx, backend)
    await claimIdempotencyKey(ctx, null)
    const id = webhookIdParam(ctx)
    ctx.body = { id, secret: await renewSecret(withActor(backend, owner), owner.account, id) }
  })

  router.post(`${webhookPath}/test`, async ctx => {
    const account = await authenticateOwnerAccount(ctx, backend)
    await claimIdempotencyKey(ctx, null)
    const id = operationId(ctx)
    await sendTest(backend, account, webhookIdParam(ctx), id)
    ctx.status = 202
    ctx.body = { id }
  })

  router.get(`${webhookPath}/deliveries`, async ctx => {
    const webhook = await requireWebhook(
      query,
      await authenticateOwnerAccount(ctx, backend),
      webhookIdParam(ctx),
    )
    const { state, limit, cursor } = parseQuery(ctx, ListWebhookDeliveriesQuery)
    const cursorScope = ['webhook', webhook.id, state ?? null]
    const position = cursor && (backend.cursors.read(cursor, cursorScope) as [string, string])
    const before = position ? { createdAt: position[0], id: position[1] } : undefined
    // One more than asked for tells whether there is a next page.
    const rows = await listDeliveries(query, webhook.id, { state, before, limit: limit + 1 })
    const page = rows.slice(0, limit)
    const last = rows.length > limit ? page.at(-1) : undefined
    ctx.body = {
      items: page.map(presentDelivery),
      has_more: last !== undefined,
      next_cursor: last ? backend.cursors.write([last.position, last.id], cursorScope) : null,
    }
  })

  router.post(`${webhookPath}/deliveries/:deliveryId/replay`, async ctx => {
    const account = await authenticateOwnerAccount(ctx, backend)
    await claimIdempotencyKey(ctx, null)
    const delivery = await replayToWebhook(
      backend,
      account,
      webhookIdParam(ctx),
      ctx.params.deliveryId ?? '',
    )
    ctx.status = 202
    ctx.body = presentDelivery(delivery)
  })
}

const webhookIdParam = (ctx: Context & { params?: Record<string, string> }): string =>
  ctx.params?.webhookId ?? ''
