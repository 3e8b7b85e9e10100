import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { owner, withLookup } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { presentPage } from '#api/present/page.ts'
import { presentDelivery } from '#api/present/webhook.ts'
import { readPage } from '#shared/core/page.ts'
import { listDeliveries } from '#shared/events/webhooks/deliveries.postgres.ts'
import { replayToWebhook, requireWebhook } from '#shared/events/webhooks/webhook.ts'

/** The messages of a webhook: listed, and sent again. */
export function webhookDeliveries(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'GET /v1/account/webhooks/:webhookId/deliveries',
    auth: webhookOfOwner,
    async handle({ webhook, query }, ctx) {
      const { state, limit, cursor } = query
      const cursorScope = ['webhook', webhook.id, state ?? null]
      const page = await readPage(
        backend.cursors,
        { limit, cursor: cursor || undefined, bound: cursorScope },
        (position: [string, string] | undefined, count) => {
          const before = position && { createdAt: position[0], id: position[1] }
          return listDeliveries(backend.postgres.query, webhook.id, { state, before, limit: count })
        },
        (delivery): [string, string] => [delivery.position, delivery.id],
      )
      ctx.body = presentPage(page, presentDelivery)
    },
  })

  endpoint(router, backend, {
    route: 'POST /v1/account/webhooks/:webhookId/deliveries/:deliveryId/replay',
    auth: owner(),
    async handle({ account, params }, ctx) {
      const delivery = await replayToWebhook(backend, account, params.webhookId, params.deliveryId)
      ctx.status = 202
      ctx.body = presentDelivery(delivery)
    },
  })
}

const webhookOfOwner = withLookup(owner(), async ({ account }, ctx, backend) => ({
  webhook: await requireWebhook(backend, account, ctx.params.webhookId ?? ''),
}))
