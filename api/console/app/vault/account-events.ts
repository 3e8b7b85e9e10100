import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { downloadButton } from '#api/console/app/parts/buttons.ts'
import { chip, timeView } from '#api/console/app/parts/chips.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { editableList } from '#api/console/app/parts/notes.ts'
import { usePages } from '#api/console/app/queries.ts'
import { downloadLines } from '#api/console/app/vault/export.ts'
import { describeChange } from '#api/console/app/vault/event-change.ts'
import type { AccountAction, AccountEvent } from '#api/contract/generated/types.ts'

/** Label and chip colour of each action. */
const actions: Record<AccountAction, [label: string, kind: string]> = {
  'key.minted': ['Key created', 'good'],
  'key.rotated': ['Key rotated', 'good'],
  'key.reminted': ['Key replaced', 'good'],
  'key.changed': ['Budget of key changed', 'busy'],
  'key.revoked': ['Key revoked', 'bad'],
  'key.revealed': ['Key read', 'busy'],
  'admin_key.issued': ['Credential issued', 'good'],
  'admin_key.revoked': ['Credential revoked', 'bad'],
  'provider_key.stored': ['Provider key stored', 'good'],
  'provider_key.deleted': ['Provider key forgotten', 'bad'],
  'policy.changed': ['Policy changed', 'busy'],
  'webhook.created': ['Webhook created', 'good'],
  'webhook.changed': ['Webhook changed', 'busy'],
  'webhook.deleted': ['Webhook deleted', 'bad'],
  'organization.created': ['Organization created', 'good'],
  'organization.changed': ['Organization changed', 'busy'],
  'organization.deleted': ['Organization removed', 'bad'],
  'organization.exported': ['Organization exported', 'plain'],
  'instructions.changed': ['Instructions changed', 'busy'],
  'role.created': ['Role created', 'good'],
  'role.changed': ['Role changed', 'busy'],
  'role.deleted': ['Role removed', 'bad'],
  'role.assigned': ['Roles assigned', 'busy'],
  'tag.created': ['Tag created', 'good'],
  'tag.changed': ['Tag changed', 'busy'],
  'tag.deleted': ['Tag removed', 'bad'],
  'tag.applied': ['Tag applied', 'busy'],
  'user.created': ['User created', 'good'],
  'reviewer.created': ['Reviewer created', 'good'],
  'reviewer.deleted': ['Reviewer removed', 'bad'],
  'user.changed': ['User changed', 'busy'],
  'user.deleted': ['User removed', 'bad'],
  'application.connected': ['Application connected', 'good'],
  'application.disconnected': ['Application disconnected', 'busy'],
  'vault.cleared': ['Vault emptied', 'bad'],
  'account.exported': ['Account exported', 'plain'],
  'balance.changed': ['Balance changed', 'busy'],
  'users_max.changed': ['Most users changed', 'busy'],
  'payment_method.changed': ['Payment method changed', 'busy'],
}

/** Who changed access and policy: the page of an admin. */
export const Events = (): View =>
  page({
    title: 'Events',
    description:
      'Who changed roles, tags, instructions, settings, members and keys, in all organizations of the account.',
    children: renderComponent(AccountEvents, {}),
  })

/** The events of the account, newest first, and the export of the account. */
export function AccountEvents(): View {
  const events = usePages('GET /v1/account/events', { query: { limit: 10 } })
  return html`<div class="panel stack">
    ${editableList(events, {
      what: 'what happened',
      empty: ['No events', 'Changes of keys, policy and access are listed here.'],
      ordered: true,
      key: ({ position }) => position,
      main: eventView,
    })}
    <div class="actions">${exportAccountButton()}</div>
  </div>`
}

export const exportAccountButton = (kind?: 'main'): View =>
  downloadButton({
    label: 'Export the account',
    ...(kind && { kind }),
    download: onBytes => downloadLines('/v1/account/export', 'account', { onBytes }),
  })

function eventView(event: AccountEvent): View {
  const { action, subject, external_id, actor, created_at, ...change } = event
  const described = describeChange(change)
  return html`<p>
      ${chip(...actions[action])} ${subject !== 'account' && html`<code>${subject}</code>`}
      ${external_id !== undefined && html` of user <code>${external_id}</code>`}
      ${described && ` ${described}`}
    </p>
    <p class="quiet">${timeView(created_at)}, by ${actor}</p>`
}
