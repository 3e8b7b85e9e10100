import { useState } from 'preact/hooks'
import { hrefTo } from '#api/console/app/address.ts'
import { call } from '#api/console/app/api-call.ts'
import { dayMs, formatCount, formatRelativeTime, formatShortDay } from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { agoView, chip } from '#api/console/app/parts/chips.ts'
import {
  confirmButton,
  confirmDialog,
  dialogButton,
  useSecret,
} from '#api/console/app/parts/dialogs.ts'
import { checkboxField, filters, textField } from '#api/console/app/parts/fields.ts'
import { editableList } from '#api/console/app/parts/notes.ts'
import { useDebounced, usePages } from '#api/console/app/queries.ts'
import { budgetButton, budgetView, fullness } from '#api/console/app/vault/budget.ts'
import words from '#api/console/app/vault/words.json' with { type: 'json' }
import type { MemoryKey } from '#api/contract/generated/types.ts'

/** Lists and revokes the keys of the account; those of users where one is named. */
export function MemoryKeys(): View {
  const [showSecret, secretView] = useSecret()
  const [user, setUser] = useState('')
  const askedUser = useDebounced(user.trim())
  const own = usePages('GET /v1/keys', { query: { active: true, limit: 200 } })
  const ofUser = usePages('GET /v1/keys', {
    query: askedUser === '' ? { limit: 1 } : { external_id: askedUser, limit: 200 },
  })
  const wanted = askedUser.toLowerCase()
  const found = own.items.filter(
    ({ external_id, name, masked_key }) =>
      external_id === null && `${name} ${masked_key}`.toLowerCase().includes(wanted),
  )
  const list = { ...own, items: askedUser === '' ? found : [...ofUser.items, ...found] }
  const refetch = (): void => {
    own.refetch()
    ofUser.refetch()
  }
  const onReplaced = (secret: string): void =>
    showSecret({
      title: 'The new key',
      explanation: 'It opens the same vault; no other key does any more.',
      secret,
      onClose: refetch,
    })
  return html`<div class="stack">
    ${filters(
      textField({ ...words.fields.findKey, type: 'search', value: user, onValue: setUser }),
    )}
    ${editableList(list, {
      what: 'keys',
      empty: ['No key', 'None has this name or these letters, and no user has this id.'],
      key: ({ id }) => id,
      main: keyView,
      actions: key => !key.current && keyActions(key, onReplaced, refetch),
    })}
    ${secretView}
  </div>`
}

const keyView = (key: MemoryKey): View => {
  const { name, masked_key, external_id: user, last_used_at: used, expires_at: end } = key
  return html`<p class="chips">
      <b>${name}</b> <code>${masked_key}</code> ${user !== null && chip(`user ${user}`)}
      ${key.current && chip('this tab', 'accent')}
      ${key.rotated_at !== null && chip('rotated', 'busy')} ${!key.active && chip('ended', 'bad')}
    </p>
    <p>${words.keys[mayDo(key)]}</p>
    <p class="quiet">
      ${[
        used === null ? 'Never used' : html`Last used ${agoView(used)}`,
        html`, made ${formatShortDay(key.created_at)}`,
        end !== null && `, ${key.active ? 'ends' : 'ended'} ${formatRelativeTime(end)}`,
        key.budget && html`. ${budgetView(key.budget)}`,
        '. ',
        key.active && nextStep(key),
      ]}
    </p> `
}

const mayDo = ({ rights, external_id: user, current }: MemoryKey): keyof typeof words.keys => {
  if (rights !== 'all') return rights
  return user !== null ? 'user' : current ? 'account' : 'all'
}

/** A key that nothing has used for so long may be forgotten; one that ends so soon should be replaced; a new one waits for its program. */
const idleDays = 90
const endingDays = 14
const newDays = 7

/** What to do about a key; nothing where all is well. */
function nextStep(key: MemoryKey): View | null {
  const { last_used_at: used, expires_at: end, rotated_at: rotated, budget, current } = key
  const daysSince = (moment: string): number =>
    Math.floor((Date.now() - Date.parse(moment)) / dayMs)
  const idle = used === null ? 0 : daysSince(used)
  const isEnding = end !== null && rotated === null && -daysSince(end) <= endingDays
  const todo = [
    isEnding && words.ending[mayDo(key)],
    budget && fullness(budget) >= 0.8 && 'Its budget is nearly used: Budget raises it.',
    used === null &&
      !current &&
      html`Nothing uses it yet: <a href=${hrefTo('connect')}>connect a program</a>, or revoke it.`,
    idle >= idleDays && `Unused for ${formatCount(idle)} days: revoke it where nothing needs it.`,
  ].find(Boolean)
  const isNew = !isEnding && used === null && daysSince(key.created_at) < newDays
  return todo ? html`<span class=${isNew ? '' : 'key-next'}>${todo}</span>` : null
}

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
        { about, kind: 'end' },
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
