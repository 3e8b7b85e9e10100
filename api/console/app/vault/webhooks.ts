import { useState } from 'preact/hooks'
import { hrefTo, navigate } from '#api/console/app/address.ts'
import { call, filled } from '#api/console/app/api-call.ts'
import {
  formatCount,
  formatDateTime,
  formatRelativeTime,
  pluralize,
} from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { buttonLink, button, copyButton } from '#api/console/app/parts/buttons.ts'
import { agoView, chip, type Labels } from '#api/console/app/parts/chips.ts'
import {
  dialogButton,
  dialogForm,
  useSecret,
  actionButton,
  confirmButton,
} from '#api/console/app/parts/dialogs.ts'
import {
  checkboxGroup,
  textField,
  useFields,
  filters,
  selectField,
} from '#api/console/app/parts/fields.ts'
import { page, section } from '#api/console/app/parts/frame.ts'
import {
  emptyNote,
  queryView,
  row,
  rows,
  editableList,
  line,
} from '#api/console/app/parts/notes.ts'
import { useCall, usePages } from '#api/console/app/queries.ts'
import words from '#api/console/app/vault/words.json' with { type: 'json' }
import type { Webhook, WebhookEvent, WebhookDelivery } from '#api/contract/generated/types.ts'

const eventLabels: Record<WebhookEvent, string> = words.webhooks.events
const allEvents = Object.entries(eventLabels) as [WebhookEvent, string][]

/** Events of a new webhook. The audit is a stream for a SIEM, without a list of deliveries: it is chosen by hand. */
const usualEvents = allEvents.map(([event]) => event).filter(event => event !== 'audit.event')

/**
 * The webhooks of the account, or one of them with what was sent to it.
 *
 * @param id of the webhook to open
 */
export function Webhooks({ id }: { id: string | undefined }): View {
  const [showSecret, secretView] = useSecret()
  const list = useCall('GET /v1/account/webhooks')
  const onSecret = (secret: string): void =>
    showSecret({
      title: 'The secret of the webhook',
      explanation: 'Messages are signed with it (Standard Webhooks). It is shown only now.',
      secret,
      onClose: list.refetch,
    })
  return page({
    title: 'Webhooks',
    description: html`Addresses of yours that hear of events; memories are never sent. Each message
      is signed: <a href="/guides/webhooks">how to check it</a>.`,
    actions: dialogButton(
      'New webhook',
      onClose => renderComponent(WebhookForm, { onClose, onCreated: onSecret }),
      { kind: 'main' },
    ),
    children: html`${queryView(list, 'the webhooks', ({ webhooks }) => {
      const opened = webhooks.find(webhook => webhook.id === id)
      if (opened)
        return renderComponent(Deliveries, {
          webhook: opened,
          key: opened.id,
          onChanged: list.refetch,
          onSecret,
        })
      return webhooks.length === 0
        ? emptyNote(
            'No webhook yet',
            'A webhook hears of finished uploads, due reflections, waiting reviews, revoked keys and budgets, and for a SIEM of the whole audit.',
            html`<p>One message, as it is posted to your address:</p>
              <pre class="code" tabindex="0">${words.webhooks.sample}</pre>
              <p><a href="/guides/webhooks">How it is signed, and how to check that</a></p>`,
          )
        : rows(
            webhooks.map(webhook => [
              webhook.id,
              renderComponent(WebhookRow, { webhook, onChanged: list.refetch }),
            ]),
          )
    })}
    ${secretView}`,
  })
}

function WebhookRow({ webhook, onChanged }: Omit<Props, 'onSecret'>): View {
  const params = { webhookId: webhook.id }
  const last = useCall('GET /v1/account/webhooks/:webhookId/deliveries', {
    params,
    query: { limit: 1 },
  })
  const latest = last.answer?.items[0]
  return row(
    html`<p class="row-title">${webhook.url} ${webhookState(webhook, latest)}</p>
      <p class="quiet">${eventsOf(webhook)}</p>
      ${latest && html`<p class="quiet">Last message ${agoView(latest.created_at)}: ${answerOf(latest)}</p>`}`,
    [
      testButton(webhook, () => {
        last.refetch()
        onChanged()
      }),
      buttonLink('Deliveries', hrefTo('webhooks', webhook.id), { about: webhook.url }),
    ],
  )
}

const eventsOf = ({ description, events }: Webhook): string =>
  [description, ...events.map(event => eventLabels[event])].filter(Boolean).join(' · ')

/** What came of the latest try of a message. */
function answerOf({ tries, next_try: next }: WebhookDelivery): string {
  const last = tries.at(-1)
  if (!last) return 'not tried yet'
  const answer =
    last.status === null ? `no answer (${last.error})` : `your server answered ${last.status}`
  return next === null ? answer : `${answer}, next try ${formatRelativeTime(next)}`
}

const testButton = ({ id, url }: Webhook, onDone: () => void): View =>
  actionButton('Send a test', {
    about: url,
    act: () => call('POST /v1/account/webhooks/:webhookId/test', { params: { webhookId: id } }),
    onDone,
    done: 'A test is on its way.',
  })

type Draft = { url: string; description: string; events: readonly WebhookEvent[] }
type FormProps = { onClose: () => void; onCreated: (secret: string) => void }

function WebhookForm({ onClose, onCreated }: FormProps): View {
  const { fields, of } = useFields<Draft>({ url: '', description: '', events: usualEvents })
  const { url, description, events } = fields
  return dialogForm({
    title: 'New webhook',
    verb: 'Create',
    onClose,
    act: async () => {
      const body = { url: url.trim(), events: [...events], ...filled({ description }) }
      onCreated((await call('POST /v1/account/webhooks', { body })).secret)
    },
    fields: html`${textField({ ...words.fields.webhookUrl, ...of('url') })}
    ${textField({ label: 'Description', ...of('description'), maxlength: 200 })}
    ${checkboxGroup({ label: 'Events', ...of('events'), choices: allEvents })}`,
  })
}

/**
 * Whether messages go to a webhook, and what came of the latest; green only when it was taken.
 *
 * @param last its latest message
 */
function webhookState(
  { active, disabled_reason, failing_since: since }: Webhook,
  last?: WebhookDelivery,
): View {
  if (!active) return chip(words.webhooks.off[disabled_reason ?? 'owner'], 'bad')
  if (since === null)
    return last ? chip(`last: ${states[last.state][0]}`, states[last.state][1]) : chip('on')
  return chip('failing', 'bad', `Since ${formatDateTime(since)}`)
}

type Props = { webhook: Webhook; onChanged: () => void; onSecret: (secret: string) => void }
type State = WebhookDelivery['state']

const states = words.webhooks.states as Labels<State>

const stateChoices: (readonly [State | '', string])[] = [
  ['', 'all'],
  ...Object.entries(states).map(([state, [label]]) => [state as State, label] as const),
]

/** What was sent to a webhook, and what can be done with it. */
function Deliveries({ webhook, onChanged, onSecret }: Props): View {
  const params = { webhookId: webhook.id }
  const [state, setState] = useState<State | ''>('')
  const list = usePages('GET /v1/account/webhooks/:webhookId/deliveries', {
    params,
    query: filled({ limit: 25, state }),
  })
  const active = !webhook.active
  const refresh = (): void => {
    list.refetch()
    onChanged()
  }
  return section(
    webhook.url,
    html`<div class="stack">
      <div class="panel stack">
        <p>${webhookState(webhook)} <span class="quiet">${eventsOf(webhook)}</span></p>
        <div class="actions">
          ${testButton(webhook, refresh)}
          ${actionButton(active ? 'Switch on' : 'Switch off', {
            act: () => call('PATCH /v1/account/webhooks/:webhookId', { params, body: { active } }),
            onDone: refresh,
            done: active ? 'The webhook is on.' : 'The webhook is off.',
          })}
          ${confirmButton('New secret', {
            title: 'Make a new secret?',
            message:
              'Messages are signed with the old one too for a day, so that you can change over.',
            verb: 'Make a new secret',
            act: async () =>
              onSecret(
                (await call('POST /v1/account/webhooks/:webhookId/secret', { params })).secret,
              ),
          })}
          ${confirmButton('Delete', {
            title: 'Delete this webhook?',
            message: html`<p>
              <b>${webhook.url}</b> gets no more messages, and its log goes with it.
            </p>`,
            act: async () => {
              await call('DELETE /v1/account/webhooks/:webhookId', { params })
              navigate('webhooks')
              onChanged()
            },
            done: 'The webhook is deleted.',
          })}
          ${button('Refresh', list.refetch)}
        </div>
        <p class="quiet chips">
          <span>Id</span> <code>${webhook.id}</code>
          ${copyButton('Copy', webhook.id, { kind: 'link', about: 'the id' })}
        </p>
      </div>
      ${filters(selectField({ label: 'State', value: state, onValue: setState, choices: stateChoices }))}
      ${editableList(list, {
        what: 'deliveries',
        empty: ['No messages yet', 'Messages of the last 30 days are listed here.'],
        key: ({ id }) => id,
        main: deliveryView,
        actions: ({ id, type, created_at }) =>
          actionButton('Send again', {
            act: async () => {
              const replay = { params: { ...params, deliveryId: id } }
              await call(
                'POST /v1/account/webhooks/:webhookId/deliveries/:deliveryId/replay',
                replay,
              )
              list.refetch()
            },
            done: 'It is sent again.',
            about: `${type} of ${formatDateTime(created_at)}`,
          }),
      })}
    </div>`,
    html`<a href=${hrefTo('webhooks')}>All webhooks</a>`,
  )
}

function deliveryView(delivery: WebhookDelivery): View {
  const { type, data, state, tries, created_at: at } = delivery
  const last = tries.at(-1)
  return html`${line(
      html`${chip(...states[state])}
        <b title=${type}>${eventLabels[type as WebhookEvent] ?? 'Test'}</b>
        <span class="quiet">${answerOf(delivery)}</span>`,
      [pluralize(tries.length, 'try', 'tries'), last && `${formatCount(last.ms)} ms`, agoView(at)],
      'line-sent',
    )}
    <details>
      <summary>What is sent, and each try</summary>
      <ul class="plain quiet">
        ${tries.map(({ at, status, error, ms }) => html`<li key=${at}>${formatDateTime(at)}: ${status ?? 'no answer'}${error && ` (${error})`}, ${ms} ms</li>`)}
      </ul>
      <pre class="code" tabindex="0">${JSON.stringify(data, null, 2)}</pre>
    </details>`
}
