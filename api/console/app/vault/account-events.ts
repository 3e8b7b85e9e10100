import { call } from '#api/console/app/api-call.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { usePagedList } from '#api/console/app/use-paged-list.ts'
import { chip } from '#api/console/app/parts/chips.ts'
import { DownloadButton } from '#api/console/app/parts/download-button.ts'
import { emptyNote, faultNote, moreButton, loadingNote } from '#api/console/app/parts/query-view.ts'
import { downloadLines } from '#api/console/app/vault/export.ts'
import { toIsoString, formatDateTime } from '#api/console/app/format.ts'
import type { AccountAction, AccountEvent } from '#api/contract/types.ts'

/** Label and chip colour of each action. */
const actions: Record<AccountAction, readonly [words: string, kind: string]> = {
  'key.minted': ['Key minted', 'good'],
  'key.rotated': ['Key rotated', 'good'],
  'key.revoked': ['Key revoked', 'bad'],
  'admin_key.issued': ['Credential issued', 'good'],
  'admin_key.revoked': ['Credential revoked', 'bad'],
  'provider_key.stored': ['Provider key stored', 'good'],
  'provider_key.deleted': ['Provider key forgotten', 'bad'],
  'policy.changed': ['Policy changed', 'busy'],
  'webhook.created': ['Webhook created', 'good'],
  'webhook.changed': ['Webhook changed', 'busy'],
  'webhook.deleted': ['Webhook deleted', 'bad'],
  'organization.created': ['Organization created', 'good'],
  'organization.deleted': ['Organization removed', 'bad'],
  'organization.exported': ['Organization exported', 'plain'],
  'vault.cleared': ['Vault emptied', 'bad'],
  'account.exported': ['Account exported', 'plain'],
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
      emptyNote('Nothing happened', 'It is all as it was.')
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

const eventRow = ({ action, subject, actor, created_at }: AccountEvent): View => {
  const [words, kind] = actions[action]
  return html`<div class="row-main">
    <p>${chip(words, kind)} ${subject !== 'account' && html`<code>${subject}</code>`}</p>
    <p class="quiet">
      <time datetime=${toIsoString(created_at)}>${formatDateTime(created_at)}</time>, by ${actor}
    </p>
  </div>`
}
