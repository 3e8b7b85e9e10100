import type { Router } from '@koa/router'
import type { Context } from 'koa'
import { accountOf, actedBy, ownerOf } from '#api/edge/account.ts'
import {
  ChangeWebhookBody,
  CreateWebhookBody,
  ListWebhookDeliveriesQuery,
} from '#api/contract/contract.ts'
import { claimed, operationOf } from '#api/edge/idempotency.ts'
import { presentDelivery, presentWebhook } from '#api/present/webhook.ts'
import { bodyOf, queryOf } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { isUuid } from '#shared/core/ids.ts'
import { listDeliveries } from '#shared/webhooks/deliveries.postgres.ts'
import { deleteWebhook, listWebhooks } from '#shared/webhooks/webhooks.postgres.ts'
import {
  changeWebhook,
  createWebhook,
  noSuchWebhook,
  renewSecret,
  replay,
  sendTest,
  webhookOf,
} from '#shared/webhooks/webhook.ts'

/** Addresses that an account wants to be told at, and what they were told. */
export function webhooks(router: Router, backend: Backend): void {
  const path = '/v1/account/webhooks'
  const one = `${path}/:webhookId`
  const { query } = backend.postgres

  router.post(path, async ctx => {
    const owner = await ownerOf(ctx, backend)
    const { url, events, description = '' } = await bodyOf(ctx, CreateWebhookBody)
    const asked = { url, events, description }
    const acted = actedBy(backend, owner)
    const { webhook, secret } = await createWebhook(acted, owner.account, operationOf(ctx), asked)
    ctx.status = 201
    ctx.body = { ...presentWebhook(webhook), secret }
  })

  router.get(path, async ctx => {
    const rows = await listWebhooks(query, await accountOf(ctx, backend))
    ctx.body = { webhooks: rows.map(presentWebhook) }
  })

  router.get(one, async ctx => {
    const account = await accountOf(ctx, backend)
    ctx.body = presentWebhook(await webhookOf(query, account, idIn(ctx)))
  })

  router.patch(one, async ctx => {
    const owner = await ownerOf(ctx, backend)
    const change = await bodyOf(ctx, ChangeWebhookBody)
    const acted = actedBy(backend, owner)
    ctx.body = presentWebhook(await changeWebhook(acted, owner.account, idIn(ctx), change))
  })

  router.delete(one, async ctx => {
    const owner = await ownerOf(ctx, backend)
    const id = idIn(ctx)
    await claimed(ctx, null)
    const acted = actedBy(backend, owner).postgres
    if (!isUuid(id) || !(await deleteWebhook(acted.query, owner.account, id))) throw noSuchWebhook()
    ctx.body = { deleted: true, id }
  })

  router.post(`${one}/secret`, async ctx => {
    const owner = await ownerOf(ctx, backend)
    await claimed(ctx, null)
    const id = idIn(ctx)
    ctx.body = { id, secret: await renewSecret(actedBy(backend, owner), owner.account, id) }
  })

  router.post(`${one}/test`, async ctx => {
    const account = await accountOf(ctx, backend)
    await claimed(ctx, null)
    const id = operationOf(ctx)
    await sendTest(backend, account, idIn(ctx), id)
    ctx.status = 202
    ctx.body = { id }
  })

  router.get(`${one}/deliveries`, async ctx => {
    const webhook = await webhookOf(query, await accountOf(ctx, backend), idIn(ctx))
    const { state, limit, cursor } = queryOf(ctx, ListWebhookDeliveriesQuery)
    const bound = ['webhook', webhook.id, state ?? null]
    const position = cursor && (backend.cursors.read(cursor, bound) as [string, string])
    const before = position ? { createdAt: position[0], id: position[1] } : undefined
    // One more than asked for tells whether there is a next page.
    const rows = await listDeliveries(query, webhook.id, { state, before, limit: limit + 1 })
    const page = rows.slice(0, limit)
    const last = rows.length > limit ? page.at(-1) : undefined
    ctx.body = {
      items: page.map(presentDelivery),
      has_more: last !== undefined,
      next_cursor: last ? backend.cursors.write([last.position, last.id], bound) : null,
    }
  })

  router.post(`${one}/deliveries/:deliveryId/replay`, async ctx => {
    const account = await accountOf(ctx, backend)
    await claimed(ctx, null)
    const delivery = await replay(backend, account, idIn(ctx), ctx.params.deliveryId ?? '')
    ctx.status = 202
    ctx.body = presentDelivery(delivery)
  })
}

const idIn = (ctx: Context & { params?: Record<string, string> }): string =>
  ctx.params?.webhookId ?? ''
