import { useState } from 'preact/hooks'
import { call } from '#api/console/app/call.ts'
import { html, part, type View } from '#api/console/app/html.ts'
import { useListing } from '#api/console/app/listing.ts'
import { chip } from '#api/console/app/parts/chips.ts'
import { confirm } from '#api/console/app/parts/confirm.ts'
import { checkField } from '#api/console/app/parts/fields.ts'
import { faultNote, moreButton, waitingNote } from '#api/console/app/parts/states.ts'
import { say } from '#api/console/app/said.ts'
import { agoOf, shortDayOf } from '#api/console/app/words.ts'
import type { MemoryKey } from '#api/contract/types.ts'

/**
 * The keys of the account, and the end of each.
 *
 * @param turn another one reads them anew
 */
export function MemoryKeys({ turn }: { turn: number }): View {
  const [revoking, setRevoking] = useState<MemoryKey>()
  const { items, waiting, fault, more, again } = useListing<MemoryKey>(
    (cursor, signal) => {
      const query = { active: true, limit: 20, ...(cursor && { cursor }) }
      return call('GET /v1/keys', { query }, signal)
    },
    [turn],
  )
  return html`<div class="stack">
    ${faultNote(fault, again)}
    <ul class="plain rows">
      ${items.map(key => html`<li key=${key.id} class="row">${keyRow(key, setRevoking)}</li>`)}
    </ul>
    ${waiting && items.length === 0 ? waitingNote('keys') : moreButton(more, waiting)}
    ${revoking && part(Revoke, { revoked: revoking, onClose: () => setRevoking(undefined), again })}
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
        Since ${shortDayOf(created_at)},${' '}
        ${last_used_at === null ? 'never used' : `used ${agoOf(last_used_at)}`}
        ${expires_at !== null && html`, ends ${agoOf(expires_at)}`}
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

function Revoke({ revoked, onClose, again }: RevokeProps): View {
  const [erase, setErase] = useState(false)
  const { id, name, masked_key, rotated_at } = revoked
  return confirm({
    title: `Revoke ${name}?`,
    words: html`<p><code>${masked_key}</code> opens nothing from the next request on.</p>
      ${
        rotated_at === null &&
        checkField({
          label: 'Erase its vault too',
          value: erase,
          onValue: setErase,
          hint: 'Nothing of it can be brought back.',
        })
      }
      ${!erase && html`<p class="quiet">Its vault stays, and is in the account's export.</p>`}`,
    verb: erase ? 'Revoke and erase' : 'Revoke',
    ...(erase && { typed: 'erase' }),
    act: async () => {
      const query = erase ? { erase } : {}
      await call('DELETE /v1/keys/:memoryKeyId', { params: { memoryKeyId: id }, query })
      say(erase ? 'The key is revoked, its vault erased.' : 'The key is revoked.')
      again()
    },
    onClose,
  })
}
