import { useState } from 'preact/hooks'
import { call } from '#api/console/app/api-call.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { usePagedList } from '#api/console/app/use-paged-list.ts'
import { chip } from '#api/console/app/parts/chips.ts'
import { confirmDialog } from '#api/console/app/parts/confirm.ts'
import { checkboxField } from '#api/console/app/parts/fields.ts'
import { faultNote, moreButton, loadingNote } from '#api/console/app/parts/query-view.ts'
import { showToast } from '#api/console/app/toasts.ts'
import { formatRelativeTime, formatShortDay } from '#api/console/app/format.ts'
import type { MemoryKey } from '#api/contract/types.ts'

/**
 * Lists and revokes the keys of the account.
 *
 * @param turn a change of it reloads them
 */
export function MemoryKeys({ turn }: { turn: number }): View {
  const [revoking, setRevoking] = useState<MemoryKey>()
  const { items, isLoading, fault, loadMore, refetch } = usePagedList<MemoryKey>(
    (cursor, signal) => {
      const query = { active: true, limit: 20, ...(cursor && { cursor }) }
      return call('GET /v1/keys', { query }, signal)
    },
    [turn],
  )
  return html`<div class="stack">
    ${faultNote(fault, refetch)}
    <ul class="plain rows">
      ${items.map(key => html`<li key=${key.id} class="row">${keyRow(key, setRevoking)}</li>`)}
    </ul>
    ${isLoading && items.length === 0 ? loadingNote('keys') : moreButton(loadMore, isLoading)}
    ${revoking && renderComponent(RevokeDialog, { revoked: revoking, onClose: () => setRevoking(undefined), again: refetch })}
  </div>`
}

const keyRow = (key: MemoryKey, onRevoke: (key: MemoryKey) => void): View => {
  const { masked_key, name, current, created_at, expires_at, rotated_at, last_used_at } = key
  return html`<div class="row-main">
      <p class="row-title">
        ${name} <code>${masked_key}</code> ${current && chip('this tab', 'good')}
        ${rotated_at !== null && chip('rotated', 'busy')}
      </p>
      <p class="quiet">
        Since ${formatShortDay(created_at)},${' '}
        ${last_used_at === null ? 'never used' : `used ${formatRelativeTime(last_used_at)}`}
        ${expires_at !== null && html`, ends ${formatRelativeTime(expires_at)}`}
      </p>
    </div>
    ${
      !current &&
      html`<button
        type="button"
        class="button"
        aria-label=${`Revoke the key ${name} ${masked_key}`}
        onClick=${() => onRevoke(key)}
      >
        Revoke
      </button>`
    }`
}

type RevokeProps = { revoked: MemoryKey; onClose: () => void; again: () => void }

function RevokeDialog({ revoked, onClose, again }: RevokeProps): View {
  const [erase, setErase] = useState(false)
  const { id, name, masked_key, rotated_at } = revoked
  return confirmDialog({
    title: `Revoke ${name}?`,
    message: html`<p><code>${masked_key}</code> opens nothing from the next request on.</p>
      ${
        rotated_at === null &&
        checkboxField({
          label: 'Erase its vault too',
          value: erase,
          onValue: setErase,
          hint: 'Nothing of it can be brought back.',
        })
      }
      ${!erase && html`<p class="quiet">Its vault stays, and is in the account's export.</p>`}`,
    verb: erase ? 'Revoke and erase' : 'Revoke',
    ...(erase && { confirmationText: 'erase' }),
    action: async () => {
      const query = erase ? { erase } : {}
      await call('DELETE /v1/keys/:memoryKeyId', { params: { memoryKeyId: id }, query })
      showToast(erase ? 'The key is revoked, its vault erased.' : 'The key is revoked.')
      again()
    },
    onClose,
  })
}
