import { useState } from 'preact/hooks'
import type { EndpointResponse } from '#api/client/client.ts'
import { useQuery, useAction } from '#api/console/app/use-query.ts'
import { call } from '#api/console/app/api-call.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { useDebounced } from '#api/console/app/use-debounced.ts'
import { chip } from '#api/console/app/parts/chips.ts'
import { confirmDialog } from '#api/console/app/parts/confirm.ts'
import { textField } from '#api/console/app/parts/fields.ts'
import { secretDialog } from '#api/console/app/parts/secret.ts'
import { emptyNote, faultNote, queryView } from '#api/console/app/parts/query-view.ts'
import { showToast } from '#api/console/app/toasts.ts'
import { formatRelativeTime, formatShortDay } from '#api/console/app/format.ts'

type MemberKey = EndpointResponse<'GET /v1/orgs/:orgId/keys'>['keys'][number]

/** @param turn a change of it reloads the keys */
export function MemberKeys({ org, turn }: { org: string; turn: number }): View {
  const [q, setQ] = useState('')
  const debouncedQuery = useDebounced(q)
  const query = useQuery(
    async signal => {
      const request = { params: { orgId: org }, query: debouncedQuery ? { q: debouncedQuery } : {} }
      return (await call('GET /v1/orgs/:orgId/keys', request, signal)).keys
    },
    [org, debouncedQuery, turn],
  )
  return html`<div class="stack">
    ${textField({ label: 'Find by member or key', type: 'search', value: q, onValue: setQ, maxlength: 320 })}
    ${queryView(query, 'keys', keys =>
      keys.length === 0
        ? emptyNote('No keys', debouncedQuery ? 'None matches.' : 'Create one beside a member.')
        : html`<ul class="plain rows">
            ${keys.map(
              key =>
                html`<li key=${key.id}>
                  ${renderComponent(KeyRow, { org, memberKey: key, onChanged: query.refetch })}
                </li>`,
            )}
          </ul>`,
    )}
  </div>`
}

type RowProps = { org: string; memberKey: MemberKey; onChanged: () => void }

function KeyRow({ org, memberKey, onChanged }: RowProps): View {
  const { id, masked_key, team_member_id: member, active, last_used_at, created_at } = memberKey
  const [revoking, setRevoking] = useState(false)
  const [whole, setWhole] = useState<string>()
  const actionState = useAction()
  const params = { orgId: org, keyId: id }
  const show = async (): Promise<void> =>
    setWhole((await call('GET /v1/orgs/:orgId/keys/:keyId', { params })).memory_key)
  return html`<article class="row">
    <div class="row-main">
      <p class="row-title">
        <code>${masked_key}</code> ${active ? chip('active', 'good') : chip('revoked', 'bad')}
      </p>
      <p class="quiet">
        ${member}, since ${formatShortDay(created_at)},${' '}
        ${last_used_at === null ? 'never used' : `used ${formatRelativeTime(last_used_at)}`}
      </p>
      ${faultNote(actionState.fault)}
    </div>
    ${
      active &&
      html`<div class="actions">
        <button
          type="button"
          class="button"
          disabled=${actionState.isRunning}
          aria-label=${`Show the key ${masked_key}`}
          onClick=${() => actionState.run(show)}
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
      confirmDialog({
        title: 'Revoke this key?',
        message: html`<p>
          <code>${masked_key}</code> of ${member} opens nothing from the next request on.
        </p>`,
        verb: 'Revoke',
        action: async () => {
          await call('DELETE /v1/orgs/:orgId/keys/:keyId', { params })
          showToast('The key is revoked.')
          onChanged()
        },
        onClose: () => setRevoking(false),
      })
    }
    ${
      whole !== undefined &&
      secretDialog({
        title: `The key of ${member}`,
        explanation: 'It authenticates as this member.',
        secret: whole,
        onClose: () => setWhole(undefined),
      })
    }
  </article>`
}
