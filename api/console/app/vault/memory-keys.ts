import { useState } from 'preact/hooks'
import { call } from '#api/console/app/api-call.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { usePagedList } from '#api/console/app/use-paged-list.ts'
import { chip } from '#api/console/app/parts/chips.ts'
import { confirmDialog } from '#api/console/app/parts/confirm.ts'
import { secretDialog } from '#api/console/app/parts/secret.ts'
import { useDebounced } from '#api/console/app/use-debounced.ts'
import { checkboxField, textField } from '#api/console/app/parts/fields.ts'
import { emptyNote, faultNote, moreButton, loadingNote } from '#api/console/app/parts/query-view.ts'
import { showToast } from '#api/console/app/toasts.ts'
import { formatRelativeTime, formatShortDay } from '#api/console/app/format.ts'
import type { MemoryKey } from '#api/contract/generated/types.ts'

/**
 * Lists and revokes the keys of the account.
 *
 * @param turn a change of it reloads them
 */
export function MemoryKeys({ turn }: { turn: number }): View {
  const [revoking, setRevoking] = useState<MemoryKey>()
  const [replacing, setReplacing] = useState<MemoryKey>()
  const [replacement, setReplacement] = useState<string>()
  const [user, setUser] = useState('')
  const askedUser = useDebounced(user.trim())
  const { items, isLoading, fault, loadMore, refetch } = usePagedList<MemoryKey>(
    (cursor, signal) => {
      const ofUser = askedUser === '' ? { active: true } : { external_id: askedUser }
      const query = { ...ofUser, limit: 20, ...(cursor && { cursor }) }
      return call('GET /v1/keys', { query }, signal)
    },
    [turn, askedUser],
  )
  return html`<div class="stack">
    ${textField({
      label: 'Keys of the user',
      type: 'search',
      value: user,
      onValue: setUser,
      maxlength: 256,
      placeholder: 'Your id of the user',
      hint: 'Ended keys too. Empty: every key that works.',
    })}
    ${faultNote(fault, refetch)}
    ${
      !isLoading &&
      !fault &&
      items.length === 0 &&
      emptyNote('No key', 'The account has no user of that id.')
    }
    <ul class="plain rows">
      ${items.map(key => html`<li key=${key.id} class="row">${keyRow(key, { onRevoke: setRevoking, onReplace: setReplacing })}</li>`)}
    </ul>
    ${isLoading && items.length === 0 ? loadingNote('keys') : moreButton(loadMore, isLoading)}
    ${revoking && renderComponent(RevokeDialog, { revoked: revoking, onClose: () => setRevoking(undefined), again: refetch })}
    ${replacing && replaceDialog(replacing, { onClose: () => setReplacing(undefined), onReplaced: setReplacement })}
    ${
      replacement !== undefined &&
      secretDialog({
        title: 'The new key',
        explanation: 'It opens the same vault; no other key does any more.',
        secret: replacement,
        onClose() {
          setReplacement(undefined)
          refetch()
        },
      })
    }
  </div>`
}

type RowActions = { onRevoke: (key: MemoryKey) => void; onReplace: (key: MemoryKey) => void }

const keyRow = (key: MemoryKey, { onRevoke, onReplace }: RowActions): View => {
  const { masked_key, name, external_id, current, active, rotated_at } = key
  const action = (verb: string, act: (key: MemoryKey) => void): View => {
    const label = `${verb} the key ${name} ${masked_key}`
    return html`<button type="button" class="button" aria-label=${label} onClick=${() => act(key)}>
      ${verb}
    </button>`
  }
  return html`<div class="row-main">
      <p class="row-title">
        ${name} <code>${masked_key}</code>
        ${external_id !== null && chip(`user ${external_id}`)}
        ${current && chip('this tab', 'good')} ${rotated_at !== null && chip('rotated', 'busy')}
        ${!active && chip('ended', 'bad')}
      </p>
      <p class="quiet">${keyTimes(key)}</p>
    </div>
    ${
      !current &&
      html`<div class="actions">
        ${rotated_at === null && action('Replace', onReplace)}
        ${active && action('Revoke', onRevoke)}
      </div>`
    }`
}

const keyTimes = ({ created_at, last_used_at, expires_at }: MemoryKey): View =>
  html`Since ${formatShortDay(created_at)},${' '}
  ${last_used_at === null ? 'never used' : `used ${formatRelativeTime(last_used_at)}`}
  ${expires_at !== null && html`, ends ${formatRelativeTime(expires_at)}`}`

type ReplaceProps = { onClose: () => void; onReplaced: (key: string) => void }

const replaceDialog = (
  { id, name, masked_key, external_id }: MemoryKey,
  { onClose, onReplaced }: ReplaceProps,
): View =>
  confirmDialog({
    title: `Replace ${external_id === null ? name : `the key of user ${external_id}`}?`,
    message: html`<p>
      <code>${masked_key}</code>, and every other key of its vault, opens nothing from the next
      request on. What is remembered stays, under a new key.
    </p>`,
    verb: 'Replace',
    action: async () => {
      const params = { memoryKeyId: id }
      onReplaced((await call('POST /v1/keys/:memoryKeyId/remint', { params })).key)
    },
    onClose,
  })

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
