import { useState } from 'preact/hooks'
import type { AnswerOf } from '#api/client/client.ts'
import { useAsked, useDoing } from '#api/console/app/asked.ts'
import { call } from '#api/console/app/call.ts'
import { html, part, type View } from '#api/console/app/html.ts'
import { useLater } from '#api/console/app/later.ts'
import { chip } from '#api/console/app/parts/chips.ts'
import { confirm } from '#api/console/app/parts/confirm.ts'
import { textField } from '#api/console/app/parts/fields.ts'
import { secretDialog } from '#api/console/app/parts/secret.ts'
import { emptyNote, faultNote, shown } from '#api/console/app/parts/states.ts'
import { say } from '#api/console/app/said.ts'
import { agoOf, shortDayOf } from '#api/console/app/words.ts'

type Key = AnswerOf<'GET /v1/orgs/:orgId/keys'>['keys'][number]

/** @param turn another one reads the keys anew */
export function MemberKeys({ org, turn }: { org: string; turn: number }): View {
  const [q, setQ] = useState('')
  const asked = useLater(q)
  const found = useAsked(
    async signal => {
      const request = { params: { orgId: org }, query: asked ? { q: asked } : {} }
      return (await call('GET /v1/orgs/:orgId/keys', request, signal)).keys
    },
    [org, asked, turn],
  )
  return html`<div class="stack">
    ${textField({ label: 'Find by member or key', type: 'search', value: q, onValue: setQ, maxlength: 320 })}
    ${shown(found, 'keys', keys =>
      keys.length === 0
        ? emptyNote('No keys', asked ? 'None matches.' : 'Mint one beside a member.')
        : html`<ul class="plain rows">
            ${keys.map(
              key =>
                html`<li key=${key.id}>
                  ${part(KeyRow, { org, memberKey: key, onChanged: found.again })}
                </li>`,
            )}
          </ul>`,
    )}
  </div>`
}

type RowProps = { org: string; memberKey: Key; onChanged: () => void }

function KeyRow({ org, memberKey, onChanged }: RowProps): View {
  const { id, masked_key, team_member_id: member, active, last_used_at, created_at } = memberKey
  const [revoking, setRevoking] = useState(false)
  const [whole, setWhole] = useState<string>()
  const doing = useDoing()
  const params = { orgId: org, keyId: id }
  const show = async (): Promise<void> =>
    setWhole((await call('GET /v1/orgs/:orgId/keys/:keyId', { params })).memory_key)
  return html`<article class="row">
    <div class="row-main">
      <p class="row-title">
        <code>${masked_key}</code> ${active ? chip('active', 'good') : chip('revoked', 'bad')}
      </p>
      <p class="quiet">
        ${member}, since ${shortDayOf(created_at)},${' '}
        ${last_used_at === null ? 'never used' : `used ${agoOf(last_used_at)}`}
      </p>
      ${faultNote(doing.fault)}
    </div>
    ${
      active &&
      html`<div class="actions">
        <button
          type="button"
          class="button"
          disabled=${doing.busy}
          aria-label=${`Show the key ${masked_key}`}
          onClick=${() => doing.run(show)}
        >
          Show
        </button>
        <button
          type="button"
          class="button"
          aria-label=${`Revoke the key ${masked_key}`}
          onClick=${() => setRevoking(true)}
        >
          Revoke
        </button>
      </div>`
    }
    ${
      revoking &&
      confirm({
        title: 'Revoke this key?',
        words: html`<p>
          <code>${masked_key}</code> of ${member} opens nothing from the next request on.
        </p>`,
        verb: 'Revoke',
        act: async () => {
          await call('DELETE /v1/orgs/:orgId/keys/:keyId', { params })
          say('The key is revoked.')
          onChanged()
        },
        onClose: () => setRevoking(false),
      })
    }
    ${
      whole !== undefined &&
      secretDialog({
        title: `The key of ${member}`,
        words: 'Whoever has it is this member.',
        secret: whole,
        onClose: () => setWhole(undefined),
      })
    }
  </article>`
}
