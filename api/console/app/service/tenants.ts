import { useState } from 'preact/hooks'
import type { EndpointResponse } from '#api/client/client.ts'
import { hrefTo } from '#api/console/app/hash-route.ts'
import { call } from '#api/console/app/api-call.ts'
import { html, type View } from '#api/console/app/html.ts'
import { useDebounced } from '#api/console/app/use-debounced.ts'
import { usePagedList } from '#api/console/app/use-paged-list.ts'
import { chip } from '#api/console/app/parts/chips.ts'
import { textField } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { emptyNote, faultNote, moreButton, loadingNote } from '#api/console/app/parts/query-view.ts'
import {
  formatCompact,
  formatCount,
  pluralize,
  formatShortDay,
  formatUtcDay,
} from '#api/console/app/format.ts'

type Tenant = EndpointResponse<'GET /v1/operator/tenants'>['items'][number]

/** The tenants with their usage. */
export function Tenants(): View {
  const [q, setQ] = useState('')
  const debouncedQuery = useDebounced(q.trim())
  const { items, isLoading, fault, loadMore, refetch } = usePagedList<Tenant>(
    (cursor, signal) => {
      const query = {
        limit: 25,
        ...(debouncedQuery && { q: debouncedQuery }),
        ...(cursor && { cursor }),
      }
      return call('GET /v1/operator/tenants', { query }, signal)
    },
    [debouncedQuery],
  )
  return page({
    title: 'Tenants',
    description: 'Accounts of this service, newest first. What they remember is theirs.',
    actions: html`<button type="button" class="button" onClick=${refetch}>Refresh</button>`,
    children: html`<div class="stack-wide">
      <div class="panel filters">
        ${textField({ label: 'Find by email', type: 'search', value: q, onValue: setQ, maxlength: 200 })}
      </div>
      ${faultNote(fault, refetch)}
      ${
        !isLoading &&
        !fault &&
        items.length === 0 &&
        emptyNote(
          'No tenants',
          debouncedQuery ? 'No email has this in it.' : 'create-account makes one.',
        )
      }
      <ul class="plain rows">
        ${items.map(tenant => html`<li key=${tenant.account_id}>${tenantRow(tenant)}</li>`)}
      </ul>
      ${isLoading && items.length === 0 ? loadingNote('tenants') : moreButton(loadMore, isLoading)}
    </div>`,
  })
}

function tenantRow(tenant: Tenant): View {
  const { account_id: id, email, last_30_days: used, pending } = tenant
  return html`<article class="row">
    <div class="row-main">
      <p class="row-title">
        ${email} ${pending > 0 && chip(`${formatCount(pending)} waiting`, 'busy')}
        ${!tenant.payment_method && chip('no card', 'plain', 'Uploads are refused')}
        ${tenant.balance !== null && chip(`${formatCompact(tenant.balance)} tokens left`, tenant.balance > 0 ? 'plain' : 'bad')}
      </p>
      <p>
        ${pluralize(used.requests, 'request')} and ${formatCompact(used.memory_tokens)} memory
        tokens in 30 days
      </p>
      <p class="quiet">${tenantStatus(tenant)}</p>
    </div>
    <a
      class="button"
      href=${hrefTo('service', 'operations', id)}
      aria-label=${`Operations of ${email}`}
    >
      Operations
    </a>
  </article>`
}

/** A tenant's counts and creation date. */
function tenantStatus(tenant: Tenant): string {
  const { keys, vaults, organizations, member_keys, last_active, created_at } = tenant
  const holdings = [
    pluralize(keys, 'key'),
    pluralize(vaults, 'vault'),
    ...(organizations > 0
      ? [pluralize(organizations, 'organization'), pluralize(member_keys, 'member key')]
      : []),
  ]
  const active = last_active ? `last active ${formatUtcDay(last_active)}` : 'never active'
  return `${holdings.join(', ')}; ${active}, since ${formatShortDay(created_at)}`
}
