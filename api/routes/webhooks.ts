import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { owner, withLookup } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { presentDelivery, presentWebhook } from '#api/present/account.ts'
import {
  changeWebhook,
  createWebhook,
  listWebhooks,
  removeWebhook,
  renewSecret,
  replayToWebhook,
  requireWebhook,
  sendTest,
} from '#shared/events/webhooks/webhook.ts'
import { presentPage } from '#api/present/page.ts'
import { readPage } from '#shared/core/page.ts'
import { listDeliveries } from '#shared/events/webhooks/deliveries.postgres.ts'

/** The endpoints of `contract/webhooks.md`. */
export function webhooks(router: Router, backend: ApiBackend): void {
  // The webhooks of an account.
  endpoint(router, backend, {
    route: 'POST /v1/account/webhooks',
    auth: owner(),
    async handle({ account, actor, body, claim }, ctx) {
      const { url, events, description = '' } = body
      const fields = { url, events, description }
      const owner = { account, actor }
      const { webhook, secret } = await createWebhook(backend, owner, claim.operation, fields)
      ctx.status = 201
      ctx.body = { ...presentWebhook(webhook), secret }
    },
  })

  endpoint(router, backend, {
    route: 'GET /v1/account/webhooks',
    auth: owner(),
    async handle({ account }, ctx) {
      const rows = await listWebhooks(backend, account)
      ctx.body = { webhooks: rows.map(presentWebhook) }
    },
  })

  endpoint(router, backend, {
    route: 'GET /v1/account/webhooks/:webhookId',
    auth: owner(),
    async handle({ account, params }, ctx) {
      ctx.body = presentWebhook(await requireWebhook(backend, account, params.webhookId))
    },
  })

  endpoint(router, backend, {
    route: 'PATCH /v1/account/webhooks/:webhookId',
    auth: owner(),
    current: async ({ account, params }) =>
      presentWebhook(await requireWebhook(backend, account, params.webhookId)),
    async handle({ account, actor, params, body }, ctx) {
      const owner = { account, actor }
      ctx.body = presentWebhook(await changeWebhook(backend, owner, params.webhookId, body))
    },
  })

  endpoint(router, backend, {
    route: 'DELETE /v1/account/webhooks/:webhookId',
    auth: owner(),
    async handle({ account, actor, params, claim }, ctx) {
      const id = params.webhookId
      const answer = { deleted: true, id }
      await removeWebhook(backend.postgres, { account, actor }, id, tx =>
        claim.storeInTransaction(tx, { status: 200, body: answer }),
      )
      ctx.body = answer
    },
  })

  endpoint(router, backend, {
    route: 'POST /v1/account/webhooks/:webhookId/secret',
    auth: owner(),
    async handle({ account, actor, params, claim }, ctx) {
      const id = params.webhookId
      ctx.body = await backend.postgres.transaction(async tx => {
        const answer = { id, secret: await renewSecret(tx, backend, { account, actor }, id) }
        await claim.storeInTransaction(tx, { status: 200, body: answer })
        return answer
      })
    },
  })

  endpoint(router, backend, {
    route: 'POST /v1/account/webhooks/:webhookId/test',
    auth: owner(),
    async handle({ account, params, claim }, ctx) {
      const id = claim.operation
      await sendTest(backend, account, params.webhookId, id)
      ctx.status = 202
      ctx.body = { id }
    },
  })

  // The messages of a webhook: listed, and sent again.
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
