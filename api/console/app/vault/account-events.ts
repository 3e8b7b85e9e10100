import { call } from '#api/console/app/api-call.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { usePagedList } from '#api/console/app/use-paged-list.ts'
import { chip } from '#api/console/app/parts/chips.ts'
import { DownloadButton } from '#api/console/app/parts/download-button.ts'
import { emptyNote, faultNote, moreButton, loadingNote } from '#api/console/app/parts/query-view.ts'
import { downloadLines } from '#api/console/app/vault/export.ts'
import { describeChange } from '#api/console/app/vault/event-change.ts'
import { toIsoString, formatDateTime } from '#api/console/app/format.ts'
import type { AccountAction, AccountEvent } from '#api/contract/generated/types.ts'

/** Label and chip colour of each action. */
const actions: Record<AccountAction, readonly [label: string, kind: string]> = {
  'key.minted': ['Key created', 'good'],
  'key.rotated': ['Key rotated', 'good'],
  'key.reminted': ['Key replaced', 'good'],
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
  'vault.cleared': ['Vault emptied', 'bad'],
  'account.exported': ['Account exported', 'plain'],
  'balance.changed': ['Balance changed', 'busy'],
  'payment_method.changed': ['Payment method changed', 'busy'],
}

/** The events of the account, newest first, and the export of the account. */
export function AccountEvents(): View {
  const { items, isLoading, fault, loadMore, refetch } = usePagedList<AccountEvent>(
    (cursor, signal) => {
      const query = { limit: 10, ...(cursor && { cursor }) }
      return call('GET /v1/account/events', { query }, signal)
    },
    [],
  )
  return html`<div class="panel stack">
    ${faultNote(fault, refetch)}
    ${
      !isLoading &&
      !fault &&
      items.length === 0 &&
      emptyNote('No events', 'Changes of keys, policy and access are listed here.')
    }
    <ol class="plain rows">
      ${items.map(event => html`<li key=${event.position} class="row">${eventRow(event)}</li>`)}
    </ol>
    ${isLoading && items.length === 0 ? loadingNote('what happened') : moreButton(loadMore, isLoading)}
    <div class="actions">
      ${renderComponent(DownloadButton, {
        label: 'Export the account',
        download: onBytes => downloadLines('/v1/account/export', 'account', { onBytes }),
      })}
    </div>
  </div>`
}

const eventRow = ({
  action,
  subject,
  external_id,
  actor,
  created_at,
  ...change
}: AccountEvent): View => {
  const [words, kind] = actions[action]
  return html`<div class="row-main">
    <p>
      ${chip(words, kind)} ${subject !== 'account' && html`<code>${subject}</code>`}
      ${external_id !== undefined && html` of user <code>${external_id}</code>`}
      ${describeChange(change)}
    </p>
    <p class="quiet">
      <time datetime=${toIsoString(created_at)}>${formatDateTime(created_at)}</time>, by ${actor}
    </p>
  </div>`
}
