import { useState } from 'preact/hooks'
import { call, UserError } from '#api/console/app/api-call.ts'
import { canWrite } from '#api/console/app/credential.ts'
import { html, renderComponent, type Children, type View } from '#api/console/app/html.ts'
import { chip, importanceChip, metadataChips, tierChip } from '#api/console/app/parts/chips.ts'
import { copyButton } from '#api/console/app/parts/copy-button.ts'
import { avatar, speakerClass } from '#api/console/app/parts/speaker.ts'
import { confirmDialog } from '#api/console/app/parts/confirm.ts'
import { showToast } from '#api/console/app/toasts.ts'
import { selectBox, type Selection } from '#api/console/app/vault/selection.ts'
import { EditDialog, type EditDialogProps } from '#api/console/app/vault/edit-dialog.ts'
import { Lineage } from '#api/console/app/vault/lineage.ts'
import type { DisplayedMemory } from '#api/console/app/vault/displayed-memory.ts'
import {
  formatRelativeTime,
  toIsoString,
  formatDateTime,
  formatDateRange,
  formatTime,
} from '#api/console/app/format.ts'

type Props = {
  memory: DisplayedMemory
  /** Replaces the plain text. */
  text?: Children
  /** Why it matches a search. */
  matchReason?: Children
  /** The card is below a heading with its day. */
  dayKnown?: boolean
  /** Lets it be chosen among others. */
  selection?: Selection
  onChange: EditDialogProps['onChange']
  onDeleted: (id: string) => void
}

/** Longer texts are cut at this length. */
const previewLength = 700

/** A memory with its actions. */
export function MemoryCard({
  memory,
  text,
  matchReason,
  dayKnown,
  selection,
  onChange,
  onDeleted,
}: Props): View {
  const [open, setOpen] = useState<'edit' | 'delete' | 'lineage'>()
  const [isExpanded, setExpanded] = useState(memory.text.length <= previewLength)
  const close = (): void => setOpen(undefined)
  const own = memory.source !== 'org'
  const excerpt = memory.text.replace(/\s+/g, ' ').slice(0, 60)
  return html`<article class=${`memory ${speakerClass(memory)}`}>
    <header class="memory-head">
      ${selection && own && canWrite() && selectBox(selection, memory.id, excerpt)}
      ${avatar(memory)}
      <span class="memory-who">${memory.name ?? memory.role}</span>
      <time datetime=${toIsoString(memory.at)} title=${formatRelativeTime(memory.at)}>
        ${dayKnown ? formatTime(memory.at) : formatDateTime(memory.at)}
      </time>
      ${tierChip(memory.tier)} ${importanceChip(memory.importance)}
      ${memory.source !== 'core' && chip(memory.source === 'org' ? 'Team' : 'Session', 'tag')}
      ${memory.expiresAt && chip(`Expires ${formatRelativeTime(memory.expiresAt)}`, 'busy', formatDateTime(memory.expiresAt))}
      ${metadataChips(memory.metadata)}
      ${memory.consolidated && chip('Consolidated', 'good', 'A reflection covers it')}
    </header>
    <p class=${isExpanded ? 'memory-text' : 'memory-text memory-cut'}>${text ?? memory.text}</p>
    ${
      !isExpanded &&
      html`<button type="button" class="button button-link" onClick=${() => setExpanded(true)}>
        Show the whole text
      </button>`
    }
    ${memory.covers && html`<p class="quiet">About ${formatDateRange(memory.covers)}</p>`}
    ${matchReason && html`<div class="memory-why">${matchReason}</div>`}
    ${
      own &&
      html`<footer class="memory-actions">
        ${actionButton('Lineage', excerpt, () => setOpen('lineage'))}
        ${
          canWrite() && [
            actionButton('Edit', excerpt, () => setOpen('edit')),
            actionButton('Delete', excerpt, () => setOpen('delete')),
          ]
        }
        ${copyButton({ label: 'Copy id', text: memory.id, title: `Copy id: ${excerpt}`, plain: true })}
      </footer>`
    }
    ${open === 'lineage' && renderComponent(Lineage, { memory, onClose: close })}
    ${open === 'edit' && renderComponent(EditDialog, { memory, onClose: close, onChange })}
    ${
      open === 'delete' &&
      confirmDialog({
        title: 'Delete this memory?',
        message: html`<blockquote class="quote">
            ${excerpt}${memory.text.length > 60 && ' …'}
          </blockquote>
          <p>It is removed from both stores at once, and cannot be brought back.</p>`,
        verb: 'Delete',
        action: async () => {
          await deleteMemory(memory.id)
          onDeleted(memory.id)
          showToast('The memory is deleted.')
        },
        onClose: close,
      })
    }
  </article>`
}

const actionButton = (name: string, about: string, act: () => void): View =>
  html`<button
    type="button"
    class="button button-plain"
    aria-label=${`${name}: ${about}`}
    onClick=${act}
  >
    ${name}
  </button>`

async function deleteMemory(id: string): Promise<void> {
  const answer = await call('POST /v1/memory/delete-ids', { body: { ids: [id] } })
  if ('failed' in answer && answer.failed.length > 0)
    throw new UserError('It could not be deleted now')
}
