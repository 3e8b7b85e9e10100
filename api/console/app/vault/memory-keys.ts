import { useState } from 'preact/hooks'
import { call } from '#api/console/app/api-call.ts'
import { describeUse, formatRelativeTime } from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { chip } from '#api/console/app/parts/chips.ts'
import {
  confirmButton,
  confirmDialog,
  dialogButton,
  useSecret,
} from '#api/console/app/parts/dialogs.ts'
import { checkboxField, filters, textField } from '#api/console/app/parts/fields.ts'
import { editableList, line } from '#api/console/app/parts/notes.ts'
import { useDebounced, usePages } from '#api/console/app/queries.ts'
import { budgetButton, budgetView } from '#api/console/app/vault/budget.ts'
import type { MemoryKey } from '#api/contract/generated/types.ts'

/** Lists and revokes the keys of the account; those of users where one is named. */
export function MemoryKeys(): View {
  const [showSecret, secretView] = useSecret()
  const [user, setUser] = useState('')
  const askedUser = useDebounced(user.trim())
  const all = usePages('GET /v1/keys', { query: { ...keysOfUser(askedUser), limit: 200 } })
  const list = {
    ...all,
    items: all.items.filter(({ external_id }) => askedUser !== '' || external_id === null),
  }
  const onReplaced = (secret: string): void =>
    showSecret({
      title: 'The new key',
      explanation: 'It opens the same vault; no other key does any more.',
      secret,
      onClose: list.refetch,
    })
  return html`<div class="stack">
    ${filters(
      textField({
        label: 'Find a user’s keys',
        type: 'search',
        value: user,
        onValue: setUser,
        maxlength: 256,
        placeholder: 'the user’s id',
      }),
    )}
    ${editableList(list, {
      what: 'keys',
      empty: ['No key', 'The account has no user of that id.'],
      key: ({ id }) => id,
      main: keyView,
      actions: key => !key.current && keyActions(key, onReplaced, list.refetch),
    })}
    ${secretView}
  </div>`
}

/** @param user id of a user; empty asks for every key that works */
const keysOfUser = (user: string) => (user === '' ? { active: true } : { external_id: user })

const keyView = (key: MemoryKey): View => {
  const { name, masked_key, external_id, rights, expires_at: end } = key
  return line(
    html`<b>${name}</b>
      <code>${masked_key}</code> ${external_id !== null && chip(`user ${external_id}`)}
      ${rightsChip(rights)} ${key.current && chip('this tab', 'accent')}
      ${key.rotated_at !== null && chip('rotated', 'busy')} ${!key.active && chip('ended', 'bad')}`,
    [
      budgetView(key.budget),
      end !== null && `ends ${formatRelativeTime(end)}`,
      describeUse(key.created_at, key.last_used_at),
    ],
  )
}

const rightsChip = (rights: MemoryKey['rights']): View | false =>
  rights !== 'all' && chip(rights === 'users' ? 'client, of all users' : 'client')

function keyActions(
  key: MemoryKey,
  onReplaced: (key: string) => void,
  onRevoked: () => void,
): (View | false)[] {
  const { id, name, masked_key, external_id, rights, active, rotated_at } = key
  const about = `key ${name} ${masked_key}`
  return [
    active && budgetButton({ id, about, budget: key.budget, onChanged: onRevoked }),
    rotated_at === null &&
      rights === 'all' &&
      confirmButton('Replace', {
        about,
        title: `Replace ${external_id === null ? name : `the key of user ${external_id}`}?`,
        message: html`<p>
          <code>${masked_key}</code>, and every other key of its vault, opens nothing from the next
          request on. What is remembered stays, under a new key.
        </p>`,
        act: async () => {
          const params = { memoryKeyId: id }
          onReplaced((await call('POST /v1/keys/:memoryKeyId/remint', { params })).key)
        },
      }),
    active &&
      dialogButton(
        'Revoke',
        onClose => renderComponent(RevokeDialog, { revoked: key, onClose, onRevoked }),
        { about },
      ),
  ]
}

type RevokeProps = { revoked: MemoryKey; onClose: () => void; onRevoked: () => void }

function RevokeDialog({ revoked, onClose, onRevoked }: RevokeProps): View {
  const [erase, setErase] = useState(false)
  const { id, name, masked_key, rights, rotated_at } = revoked
  const mayErase = rotated_at === null && rights === 'all'
  return confirmDialog({
    title: `Revoke ${name}?`,
    message: html`<p><code>${masked_key}</code> opens nothing from the next request on.</p>
      ${
        mayErase &&
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
    act: () =>
      call('DELETE /v1/keys/:memoryKeyId', {
        params: { memoryKeyId: id },
        query: erase ? { erase } : {},
      }),
    onDone: onRevoked,
    done: erase ? 'The key is revoked, its vault erased.' : 'The key is revoked.',
    onClose,
  })
}
