import { useState } from 'preact/hooks'
import type { EndpointResponse } from '#api/client/client.ts'
import { call } from '#api/console/app/api-call.ts'
import { canWrite } from '#api/console/app/credential.ts'
import { formatRelativeTime } from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { chip, tagChips } from '#api/console/app/parts/chips.ts'
import { confirmDialog } from '#api/console/app/parts/confirm.ts'
import { page, section } from '#api/console/app/parts/frame.ts'
import {
  emptyNote,
  faultNote,
  loadingNote,
  moreButton,
  queryView,
} from '#api/console/app/parts/query-view.ts'
import { showToast } from '#api/console/app/toasts.ts'
import { usePagedList } from '#api/console/app/use-paged-list.ts'
import { useAction, useQuery } from '#api/console/app/use-query.ts'

type SharedPage = EndpointResponse<'GET /v1/shares'>
type Statement = SharedPage['items'][number]
type SharingState = Pick<SharedPage, 'shares' | 'key_shares'>

/** What the team's memory has from a member, and whether it gets more. */
export function Shared(): View {
  const sharing = useQuery(signal => call('GET /v1/shares', { query: { limit: 1 } }, signal), [])
  return page({
    title: 'Shared',
    description: 'What the memory of your team has from you.',
    children: html`<div class="stack-wide">
      ${queryView(sharing, 'whether you share', state =>
        renderComponent(Switch, { state, onChanged: sharing.refetch }),
      )}
      ${section('From you', renderComponent(Statements, {}))}
    </div>`,
  })
}

function Switch({ state, onChanged }: { state: SharingState; onChanged: () => void }): View {
  const action = useAction()
  const { shares, key_shares: keyShares } = state
  const change = async (): Promise<void> => {
    await call('PATCH /v1/shares', { body: { shares: !shares } })
    showToast(shares ? 'From now on nothing is shared.' : 'What you say is shared again.')
    onChanged()
  }
  return html`<div class="panel row">
    <div class="row-main">
      <p class="row-title">
        ${shares && keyShares ? chip('shared', 'good') : chip('for you alone', 'plain')}
        ${' '}${shares ? 'What you say may reach your team' : 'What you say is remembered for you alone'}
      </p>
      ${
        !keyShares &&
        html`<p class="quiet">
          Nothing that is said with this key is shared: your admin made it so.
        </p>`
      }
      ${faultNote(action.fault)}
    </div>
    ${
      canWrite() &&
      html`<button
        type="button"
        class="button"
        disabled=${action.isRunning}
        onClick=${() => action.run(change)}
      >
        ${shares ? 'Share nothing' : 'Share'}
      </button>`
    }
  </div>`
}

function Statements(): View {
  const { items, isLoading, fault, loadMore, refetch, updateItems } = usePagedList<Statement>(
    (cursor, signal) => {
      const query = { limit: 25, ...(cursor && { cursor }) }
      return call('GET /v1/shares', { query }, signal)
    },
    [],
  )
  const forget = (id: string): void => updateItems(all => all.filter(one => one.id !== id))
  return html`<div class="stack">
    ${faultNote(fault, refetch)}
    ${
      !isLoading &&
      !fault &&
      items.length === 0 &&
      emptyNote('Nothing is shared from you', 'Facts that are found in what you say appear here.')
    }
    <ol class="plain rows">
      ${items.map(
        item =>
          html`<li key=${item.id}>
            ${renderComponent(StatementRow, { item, onWithdrawn: () => forget(item.id) })}
          </li>`,
      )}
    </ol>
    ${isLoading && items.length === 0 ? loadingNote('what is shared') : moreButton(loadMore, isLoading)}
  </div>`
}

type RowProps = { item: Statement; onWithdrawn: () => void }

function StatementRow({ item, onWithdrawn }: RowProps): View {
  const [asking, setAsking] = useState(false)
  const { id, text, said_at: saidAt, current, author, tags } = item
  const isChanged = current !== null && current !== text
  return html`<article class="row">
    <div class="row-main">
      <p class="row-title">${text}</p>
      ${isChanged && html`<p class="quiet">Now: ${current} (${author})</p>`}
      <p class="quiet">
        ${tags ? tagChips(tags) : chip('not visible to you')} said ${formatRelativeTime(saidAt)}
      </p>
    </div>
    ${
      canWrite() &&
      html`<button
        type="button"
        class="button"
        aria-label=${`Take back ${text}`}
        onClick=${() => setAsking(true)}
      >
        Take back
      </button>`
    }
    ${
      asking &&
      confirmDialog({
        title: 'Take this back?',
        message: html`<p>
          Your team no longer sees <b>${text}</b> as yours, for good. What others said too stays in
          their name, and your own vault is not changed.
        </p>`,
        verb: 'Take back',
        action: async () => {
          await call('DELETE /v1/shares/:statementId', { params: { statementId: id } })
          showToast('It is taken back.')
          onWithdrawn()
        },
        onClose: () => setAsking(false),
      })
    }
  </article>`
}
