import { useState } from 'preact/hooks'
import { call } from '#api/console/app/api-call.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { chip, metadataChips, tagChips } from '#api/console/app/parts/chips.ts'
import { confirmDialog } from '#api/console/app/parts/confirm.ts'
import type { SharedMemory } from '#api/console/app/org/org-queries.ts'
import { SharedForm } from '#api/console/app/org/shared-form.ts'
import { SharedHistory } from '#api/console/app/org/shared-history.ts'
import { showToast } from '#api/console/app/toasts.ts'
import { toIsoString, formatDateTime, formatPercent } from '#api/console/app/format.ts'

type Props = {
  org: string
  memory: SharedMemory
  onChanged: (memory: SharedMemory) => void
  onDeleted: (id: string) => void
}

/** A shared memory with the actions of an admin. */
export function SharedCard({ org, memory, onChanged, onDeleted }: Props): View {
  const [open, setOpen] = useState<'edit' | 'delete' | 'history'>()
  const close = (): void => setOpen(undefined)
  const excerpt = memory.text.slice(0, 60)
  const button = (name: string, which: 'edit' | 'delete' | 'history'): View =>
    html`<button
      type="button"
      class="button button-plain"
      aria-label=${`${name}: ${excerpt}`}
      onClick=${() => setOpen(which)}
    >
      ${name}
    </button>`
  return html`<article class="memory">
    <header class="memory-head">
      <span class="memory-who">${memory.author}</span>
      <time datetime=${toIsoString(memory.acquired_at)}>${formatDateTime(memory.acquired_at)}</time>
      ${memory.reviewed ? chip('Reviewed', 'good') : chip(`${formatPercent(memory.confidence)} sure`, 'busy')}
      ${
        memory.sensitivity === 'restricted' &&
        chip('Restricted', 'bad', 'Only roles that see everything see it')
      }
    </header>
    <p class="memory-text">${memory.text}</p>
    <p class="chips">${tagChips(memory.tags)} ${metadataChips(memory.metadata)}</p>
    <footer class="memory-actions">
      ${button('History', 'history')} ${button('Edit', 'edit')} ${button('Delete', 'delete')}
    </footer>
    ${
      open === 'history' &&
      renderComponent(SharedHistory, {
        org,
        id: memory.mem_id,
        onClose: close,
        onRestored: onChanged,
      })
    }
    ${
      open === 'edit' &&
      renderComponent(SharedForm, {
        org,
        memory,
        onClose: close,
        onSaved: saved => saved && onChanged(saved),
      })
    }
    ${
      open === 'delete' &&
      confirmDialog({
        title: 'Delete this shared memory?',
        message: html`<blockquote class="quote">
            ${excerpt}${memory.text.length > 60 && ' …'}
          </blockquote>
          <p>Members no longer see it. For 30 days the audit can bring it back.</p>`,
        verb: 'Delete',
        action: async () => {
          const params = { orgId: org, memId: memory.mem_id }
          await call('DELETE /v1/orgs/:orgId/memories/:memId', { params })
          onDeleted(memory.mem_id)
          showToast('The memory is deleted.')
        },
        onClose: close,
      })
    }
  </article>`
}
