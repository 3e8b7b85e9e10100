import { useState } from 'preact/hooks'
import { call } from '#api/console/app/api-call.ts'
import { formatDateTime, formatRelativeTime, toIsoString } from '#api/console/app/format.ts'
import { hrefTo, navigate } from '#api/console/app/hash-route.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { chip } from '#api/console/app/parts/chips.ts'
import { confirmDialog } from '#api/console/app/parts/confirm.ts'
import { selectField } from '#api/console/app/parts/fields.ts'
import { section } from '#api/console/app/parts/frame.ts'
import { emptyNote, faultNote, loadingNote, moreButton } from '#api/console/app/parts/query-view.ts'
import { showToast } from '#api/console/app/toasts.ts'
import { usePagedList } from '#api/console/app/use-paged-list.ts'
import { useAction } from '#api/console/app/use-query.ts'
import { stateOf } from '#api/console/app/vault/webhooks/webhook-state.ts'
import type { Webhook, WebhookDelivery } from '#api/contract/generated/types.ts'

type Props = { webhook: Webhook; onChanged: () => void; onSecret: (secret: string) => void }
type State = WebhookDelivery['state'] | ''

const states: readonly (readonly [State, string])[] = [
  ['', 'all'],
  ['pending', 'waiting'],
  ['delivered', 'delivered'],
  ['failed', 'given up'],
]

/** One webhook: what was sent to it, and what can be done with it. */
export function Deliveries({ webhook, onChanged, onSecret }: Props): View {
  const { id } = webhook
  const params = { webhookId: id }
  const [state, setState] = useState<State>('')
  const [asking, setAsking] = useState<'delete' | 'secret'>()
  const actionState = useAction()
  const list = usePagedList<WebhookDelivery>(
    (cursor, signal) => {
      const query = { limit: 25, ...(state && { state }), ...(cursor && { cursor }) }
      return call('GET /v1/account/webhooks/:webhookId/deliveries', { params, query }, signal)
    },
    [id, state],
  )
  const act = (work: () => Promise<unknown>, message: string): Promise<boolean> =>
    actionState.run(async () => {
      await work()
      showToast(message)
      list.refetch()
      onChanged()
    })
  const button = (label: string, onClick: () => void): View =>
    html`<button type="button" class="button" disabled=${actionState.isRunning} onClick=${onClick}>
      ${label}
    </button>`
  const active = !webhook.active
  return section(
    webhook.url,
    html`<div class="stack">
      <div class="panel stack">
        <p>${stateOf(webhook)} <code>${id}</code></p>
        <div class="actions">
          ${button('Send a test', () => void act(() => call('POST /v1/account/webhooks/:webhookId/test', { params }), 'A test is on its way.'))}
          ${button(active ? 'Switch on' : 'Switch off', () => void act(() => call('PATCH /v1/account/webhooks/:webhookId', { params, body: { active } }), active ? 'The webhook is on.' : 'The webhook is off.'))}
          ${button('New secret', () => setAsking('secret'))}
          ${button('Delete', () => setAsking('delete'))} ${button('Refresh', list.refetch)}
        </div>
        ${faultNote(actionState.fault)}
      </div>
      <div class="panel filters">
        ${selectField({ label: 'State', value: state, onValue: setState, choices: states })}
      </div>
      ${faultNote(list.fault, list.refetch)}
      ${
        !list.isLoading &&
        !list.fault &&
        list.items.length === 0 &&
        emptyNote('No messages yet', 'Messages of the last 30 days are listed here.')
      }
      <ul class="plain rows">
        ${list.items.map(
          delivery =>
            html`<li key=${delivery.id}>
              ${renderComponent(DeliveryRow, { webhookId: id, delivery, onReplayed: list.refetch })}
            </li>`,
        )}
      </ul>
      ${list.isLoading && list.items.length === 0 ? loadingNote('deliveries') : moreButton(list.loadMore, list.isLoading)}
      ${asking && webhookDialog(asking, { webhook, onChanged, onSecret, onClose: () => setAsking(undefined) })}
    </div>`,
    html`<a href=${hrefTo('webhooks')}>All webhooks</a>`,
  )
}

function webhookDialog(
  asking: 'delete' | 'secret',
  { webhook, onChanged, onSecret, onClose }: Props & { onClose: () => void },
): View {
  const params = { webhookId: webhook.id }
  if (asking === 'secret')
    return confirmDialog({
      title: 'Make a new secret?',
      message: html`<p>
        Messages are signed with the old one too for a day, so that you can change over.
      </p>`,
      verb: 'Make a new secret',
      action: async () =>
        onSecret((await call('POST /v1/account/webhooks/:webhookId/secret', { params })).secret),
      onClose,
    })
  return confirmDialog({
    title: 'Delete this webhook?',
    message: html`<p><b>${webhook.url}</b> is told nothing any more, and its log goes with it.</p>`,
    verb: 'Delete',
    action: async () => {
      await call('DELETE /v1/account/webhooks/:webhookId', { params })
      showToast('The webhook is deleted.')
      navigate('webhooks')
      onChanged()
    },
    onClose,
  })
}

const stateChips: Record<WebhookDelivery['state'], readonly [string, string]> = {
  pending: ['waiting', 'busy'],
  delivered: ['delivered', 'good'],
  failed: ['given up', 'bad'],
}

type RowProps = { webhookId: string; delivery: WebhookDelivery; onReplayed: () => void }

function DeliveryRow({ webhookId, delivery, onReplayed }: RowProps): View {
  const { id, type, data, state, next_try, tries, created_at } = delivery
  const actionState = useAction()
  const replay = async (): Promise<void> => {
    const params = { webhookId, deliveryId: id }
    await call('POST /v1/account/webhooks/:webhookId/deliveries/:deliveryId/replay', { params })
    showToast('It is sent again.')
    onReplayed()
  }
  return html`<article class="row">
    <div class="row-main">
      <p class="row-title">${type} ${chip(...stateChips[state])}</p>
      <p class="quiet">
        <time datetime=${toIsoString(created_at)}>${formatDateTime(created_at)}</time>
        ${next_try !== null && `, next try ${formatRelativeTime(next_try)}`}
      </p>
      ${
        tries.length > 0 &&
        html`<ul class="plain tries quiet">
          ${tries.map(({ at, status, error, ms }) => html`<li key=${at}>${formatDateTime(at)}: ${status ?? 'no answer'}${error && ` (${error})`}, ${ms} ms</li>`)}
        </ul>`
      }
      <details>
        <summary>What is sent</summary>
        <pre class="code" tabindex="0">${JSON.stringify(data, null, 2)}</pre>
      </details>
      ${faultNote(actionState.fault)}
    </div>
    <button
      type="button"
      class="button"
      aria-label=${`Send again: ${type} of ${formatDateTime(created_at)}`}
      disabled=${actionState.isRunning}
      onClick=${() => actionState.run(replay)}
    >
      Send again
    </button>
  </article>`
}
