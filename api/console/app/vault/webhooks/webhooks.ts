import { useState } from 'preact/hooks'
import { call } from '#api/console/app/api-call.ts'
import { hrefTo } from '#api/console/app/hash-route.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { emptyNote, queryView } from '#api/console/app/parts/query-view.ts'
import { secretDialog } from '#api/console/app/parts/secret.ts'
import { useQuery } from '#api/console/app/use-query.ts'
import { stateOf } from '#api/console/app/vault/webhooks/webhook-state.ts'
import { Deliveries } from '#api/console/app/vault/webhooks/deliveries.ts'
import { eventLabels, WebhookForm } from '#api/console/app/vault/webhooks/webhook-form.ts'
import type { Webhook } from '#api/contract/generated/types.ts'

/**
 * The webhooks of the account, or one of them with what was sent to it.
 *
 * @param id of the webhook to open
 */
export function Webhooks({ id }: { id: string | undefined }): View {
  const [isAdding, setAdding] = useState(false)
  const [secret, setSecret] = useState<string>()
  const list = useQuery(signal => call('GET /v1/account/webhooks', {}, signal), [])
  return page({
    title: 'Webhooks',
    description:
      'Addresses of yours that are told when something happens. Memories are never sent.',
    actions: html`<button type="button" class="button button-main" onClick=${() => setAdding(true)}>
      New webhook
    </button>`,
    children: html`<div class="stack-wide">
      ${queryView(list, 'the webhooks', ({ webhooks }) => {
        const opened = webhooks.find(webhook => webhook.id === id)
        if (opened)
          return renderComponent(Deliveries, {
            webhook: opened,
            key: opened.id,
            onChanged: list.refetch,
            onSecret: setSecret,
          })
        return webhooks.length === 0
          ? emptyNote(
              'No webhook yet',
              'Finished uploads, due reflections, waiting reviews and revoked keys can be told.',
            )
          : html`<ul class="plain rows">
              ${webhooks.map(webhook => html`<li key=${webhook.id} class="row">${webhookRow(webhook)}</li>`)}
            </ul>`
      })}
      ${isAdding && renderComponent(WebhookForm, { onClose: () => setAdding(false), onCreated: setSecret })}
      ${
        secret !== undefined &&
        secretDialog({
          title: 'The secret of the webhook',
          explanation: 'Messages are signed with it (Standard Webhooks). It is shown only now.',
          secret,
          onClose() {
            setSecret(undefined)
            list.refetch()
          },
        })
      }
    </div>`,
  })
}

const webhookRow = (webhook: Webhook): View =>
  html`<div class="row-main">
      <p class="row-title">${webhook.url} ${stateOf(webhook)}</p>
      <p class="quiet">
        ${webhook.description && `${webhook.description} · `}
        ${webhook.events.map(event => eventLabels[event]).join(', ')}
      </p>
    </div>
    <a
      class="button"
      href=${hrefTo('webhooks', webhook.id)}
      aria-label=${`Deliveries to ${webhook.url}`}
      >Deliveries</a
    >`
