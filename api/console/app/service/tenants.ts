import { useState } from 'preact/hooks'
import type { AnswerOf } from '#api/client/client.ts'
import { addressOf } from '#api/console/app/address.ts'
import { call } from '#api/console/app/call.ts'
import { html, type View } from '#api/console/app/html.ts'
import { useLater } from '#api/console/app/later.ts'
import { useListing } from '#api/console/app/listing.ts'
import { chip } from '#api/console/app/parts/chips.ts'
import { textField } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { emptyNote, faultNote, moreButton, waitingNote } from '#api/console/app/parts/states.ts'
import { brief, count, counted, shortDayOf } from '#api/console/app/words.ts'

type Tenant = AnswerOf<'GET /v1/operator/tenants'>['items'][number]

/** Who uses the service, and how much. */
export function Tenants(): View {
  const [q, setQ] = useState('')
  const asked = useLater(q.trim())
  const { items, waiting, fault, more, again } = useListing<Tenant>(
    (cursor, signal) => {
      const query = { limit: 25, ...(asked && { q: asked }), ...(cursor && { cursor }) }
      return call('GET /v1/operator/tenants', { query }, signal)
    },
    [asked],
  )
  return page({
    title: 'Tenants',
    words: 'Accounts of this service, newest first. What they remember is theirs.',
    actions: html`<button type="button" class="button" onClick=${again}>Refresh</button>`,
    children: html`<div class="stack-wide">
      <div class="panel filters">
        ${textField({ label: 'Find by email', type: 'search', value: q, onValue: setQ, maxlength: 200 })}
      </div>
      ${faultNote(fault, again)}
      ${
        !waiting &&
        !fault &&
        items.length === 0 &&
        emptyNote('No tenants', asked ? 'No email has this in it.' : 'create-account makes one.')
      }
      <ul class="plain rows">
        ${items.map(tenant => html`<li key=${tenant.account_id}>${tenantRow(tenant)}</li>`)}
      </ul>
      ${waiting && items.length === 0 ? waitingNote('tenants') : moreButton(more, waiting)}
    </div>`,
  })
}

function tenantRow(tenant: Tenant): View {
  const { account_id: id, email, last_30_days: used, pending } = tenant
  return html`<article class="row">
    <div class="row-main">
      <p class="row-title">
        ${email} ${pending > 0 && chip(`${count(pending)} waiting`, 'busy')}
        ${!tenant.payment_method && chip('no card', 'plain', 'Uploads are refused')}
        ${tenant.balance !== null && chip(`${brief(tenant.balance)} tokens left`, tenant.balance > 0 ? 'plain' : 'bad')}
      </p>
      <p>
        ${counted(used.requests, 'request')} and ${brief(used.memory_tokens)} memory tokens in 30
        days
      </p>
      <p class="quiet">${standingOf(tenant)}</p>
    </div>
    <a
      class="button"
      href=${addressOf('service', 'operations', id)}
      aria-label=${`Operations of ${email}`}
    >
      Operations
    </a>
  </article>`
}

/** What a tenant has, and since when. */
function standingOf(tenant: Tenant): string {
  const { keys, vaults, organizations, member_keys, last_active, created_at } = tenant
  const has = [
    counted(keys, 'key'),
    counted(vaults, 'vault'),
    ...(organizations > 0
      ? [counted(organizations, 'organization'), counted(member_keys, 'member key')]
      : []),
  ]
  const active = last_active ? `last active ${shortDayOf(last_active)}` : 'never active'
  return `${has.join(', ')}; ${active}, since ${shortDayOf(created_at)}`
}
