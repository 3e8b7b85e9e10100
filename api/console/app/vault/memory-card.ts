import { useState } from 'preact/hooks'
import { call, UserError } from '#api/console/app/api-call.ts'
import { canWrite } from '#api/console/app/credential.ts'
import {
  formatDateRange,
  formatDateTime,
  formatRelativeTime,
  formatTime,
  toDateTimeInput,
} from '#api/console/app/format.ts'
import { html, renderComponent, type Children, type View } from '#api/console/app/html.ts'
import { button, copyButton } from '#api/console/app/parts/buttons.ts'
import {
  avatar,
  chip,
  importanceChip,
  metadataChips,
  speakerColours,
  tierChip,
  timeView,
} from '#api/console/app/parts/chips.ts'
import { confirmButton, dialogButton, dialogForm } from '#api/console/app/parts/dialogs.ts'
import { textAreaField, textField, useFields } from '#api/console/app/parts/fields.ts'
import { selectBox, type Selection } from '#api/console/app/parts/selection.ts'
import type { DisplayedMemory } from '#api/console/app/vault/displayed-memory.ts'
import { FeedbackDialog, feedbackChip } from '#api/console/app/vault/feedback-dialog.ts'
import { Lineage } from '#api/console/app/vault/lineage.ts'
import { forgetAnswers } from '#api/console/app/vault/read-once.ts'
import { useVaultUser } from '#api/console/app/vault-user.ts'

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
  const user = useVaultUser()
  const [isExpanded, setExpanded] = useState(memory.text.length <= previewLength)
  const { id, at, expires_at: end } = memory
  const own = memory.source !== 'org'
  const excerpt = memory.text.replace(/\s+/g, ' ').slice(0, 60)
  const action = { kind: 'plain', about: excerpt } as const
  return html`<article class="memory stack-tight" style=${speakerColours(memory)}>
    <header class="memory-head chips">
      ${selection && own && canWrite() && selectBox(selection, id, excerpt)} ${avatar(memory)}
      <span class="memory-who">${memory.name ?? memory.role}</span>
      ${timeView(at, dayKnown ? formatTime(at) : formatDateTime(at), formatRelativeTime(at))}
      ${tierChip(memory.tier)} ${importanceChip(memory.importance)}
      ${memory.source !== 'core' && chip(memory.source === 'org' ? 'Team' : 'Session', 'data')}
      ${end && chip(`Expires ${formatRelativeTime(end)}`, 'busy', formatDateTime(end))}
      ${metadataChips(memory.metadata)}
      ${memory.consolidated && chip('Consolidated', 'good', 'A reflection covers it')}
      ${feedbackChip(memory)}
    </header>
    <p class=${isExpanded ? 'memory-text' : 'memory-text memory-cut'}>${text ?? memory.text}</p>
    ${!isExpanded && button('Show the whole text', () => setExpanded(true), { kind: 'link' })}
    ${memory.covers && html`<p class="quiet">About ${formatDateRange(memory.covers)}</p>`}
    ${matchReason}
    ${
      own &&
      html`<footer class="actions">
        ${dialogButton('Lineage', onClose => renderComponent(Lineage, { memory, onClose }), action)}
        ${
          canWrite() && [
            dialogButton(
              'Edit',
              onClose => renderComponent(EditDialog, { memory, onClose, onChange }),
              action,
            ),
            dialogButton(
              'Feedback',
              onClose => renderComponent(FeedbackDialog, { memory, onClose, onChange }),
              action,
            ),
            confirmButton('Delete', {
              ...action,
              title: 'Delete this memory?',
              message: html`<blockquote class="quote">
                  ${excerpt}${memory.text.length > 60 && ' …'}
                </blockquote>
                <p>It is removed from both stores at once, and cannot be brought back.</p>`,
              act: () => deleteMemory(id, user),
              onDone: () => onDeleted(id),
              done: 'The memory is deleted.',
            }),
          ]
        }
        ${copyButton('Copy id', id, action)}
      </footer>`
    }
  </article>`
}

async function deleteMemory(id: string, user: string | undefined): Promise<void> {
  const request = { body: { ids: [id] } }
  const answer = await call('POST /v1/memory/delete-ids', request, undefined, user)
  if ('failed' in answer && answer.failed.length > 0)
    throw new UserError('It could not be deleted now')
}

type CardsOptions = Pick<Props, 'selection' | 'dayKnown'> & {
  updateItems: (update: (items: DisplayedMemory[]) => DisplayedMemory[]) => void
}

/** Cards of the memories of a list, which follows what is edited and deleted. */
export const memoryCards = (
  memories: readonly DisplayedMemory[],
  { updateItems, ...options }: CardsOptions,
): View =>
  html`<ul class="plain">
    ${memories.map(
      memory =>
        html`<li key=${memory.id}>
          ${renderComponent(MemoryCard, {
            ...options,
            memory,
            onChange: (id, changed) =>
              updateItems(all => all.map(one => (one.id === id ? { ...one, ...changed } : one))),
            onDeleted: id => updateItems(all => all.filter(one => one.id !== id)),
          })}
        </li>`,
    )}
  </ul>`

type EditDialogProps = {
  memory: DisplayedMemory
  onClose: () => void
  onChange: (
    id: string,
    changed: Partial<Pick<DisplayedMemory, 'text' | 'expires_at' | 'feedback'>>,
  ) => void
}

/** Edits the text and expiry of a memory; its date, tier and importance stay. */
function EditDialog({ memory, onClose, onChange }: EditDialogProps): View {
  const user = useVaultUser()
  const before = memory.expires_at ? toDateTimeInput(memory.expires_at) : ''
  const { fields, of } = useFields({ text: memory.text, end: before })
  const { text, end } = fields
  return dialogForm({
    title: 'Edit memory',
    verb: 'Save',
    onClose,
    act: async () => {
      const expires_at = end === '' ? null : new Date(end).toISOString()
      // The field has minutes only: an unchanged one must not cut the stored milliseconds.
      const body = { memory_id: memory.id, text, ...(end !== before && { expires_at }) }
      const answer = await call('POST /v1/memory/edit', { body }, undefined, user)
      forgetAnswers()
      onChange(memory.id, { text, expires_at: answer.expires_at })
    },
    done: 'The memory is changed.',
    fields: html`${textAreaField({
      label: 'Text',
      ...of('text'),
      rows: 8,
      required: true,
      maxlength: 32_000,
      hint: 'It keeps its date, tier and importance, and is found by its new words from now on.',
    })}
    ${textField({
      label: 'Expires',
      type: 'datetime-local',
      ...of('end'),
      min: toDateTimeInput(Date.now()),
      hint: 'From then on it is gone, as if it were deleted. Empty: it stays.',
    })}`,
  })
}
