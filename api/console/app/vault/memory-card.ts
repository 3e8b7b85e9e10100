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
import { copyButton } from '#api/console/app/parts/buttons.ts'
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
import { line, row, rows } from '#api/console/app/parts/notes.ts'
import { selectBox, type Selection } from '#api/console/app/parts/selection.ts'
import words from '#api/console/app/vault/words.json' with { type: 'json' }
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
  /** It is below a heading with its day. */
  dayKnown?: boolean
  /** Lets it be chosen among others. */
  selection?: Selection
  onChange: EditDialogProps['onChange']
  onDeleted: (id: string) => void
}

const excerptOf = ({ text }: DisplayedMemory): string => text.replace(/\s+/g, ' ').slice(0, 60)

const isOwn = ({ source }: DisplayedMemory): boolean => source !== 'org'

const boxOf = (
  memory: DisplayedMemory,
  selection: Selection | undefined,
): View | undefined | false =>
  selection && isOwn(memory) && canWrite() && selectBox(selection, memory.id, excerptOf(memory))

const whenView = ({ at }: DisplayedMemory, dayKnown: boolean | undefined): View =>
  timeView(at, dayKnown ? formatTime(at) : formatDateTime(at), formatRelativeTime(at))

/** What is to be known of a memory beside its words; what is usual is left out of a row. */
const factsOf = (memory: DisplayedMemory): Children[] => {
  const { expires_at: end, source } = memory
  return [
    memory.tier > 1 && tierChip(memory.tier),
    importanceChip(memory.importance),
    source !== 'core' && chip(source === 'org' ? 'Team' : 'Session', 'data'),
    end && chip(`Expires ${formatRelativeTime(end)}`, 'busy', formatDateTime(end)),
    metadataChips(memory.metadata),
    memory.consolidated && chip('Consolidated', 'plain', 'A reflection covers it'),
    feedbackChip(memory),
  ]
}

/** A memory with why it was found, and its actions. */
export function MemoryCard(props: Props): View {
  const { memory, text, matchReason, dayKnown, selection } = props
  return html`<article class="memory stack-tight" style=${speakerColours(memory)}>
    <header class="memory-head chips">
      ${boxOf(memory, selection)} ${avatar(memory)}
      <span class="memory-who">${memory.name ?? memory.role}</span>
      ${whenView(memory, dayKnown)} ${factsOf(memory)}
    </header>
    <p class="memory-text">${text ?? memory.text}</p>
    ${coversView(memory)} ${matchReason}
    ${isOwn(memory) && html`<footer class="actions">${renderComponent(MemoryActions, props)}</footer>`}
  </article>`
}

const coversView = ({ covers }: DisplayedMemory): View | null | undefined =>
  covers && html`<p class="quiet">About ${formatDateRange(covers)}</p>`

/** A memory in a line, which opens to all of its words. */
function MemoryRow(props: Props): View {
  const { memory, dayKnown, selection } = props
  const [isOpen, setOpen] = useState(false)
  return row(
    html`${line(
      html`${boxOf(memory, selection)} ${avatar(memory)}
        <button
          type="button"
          class="line-text"
          aria-expanded=${isOpen}
          onClick=${() => setOpen(!isOpen)}
        >
          ${memory.text}
        </button>`,
      [...factsOf(memory), whenView(memory, dayKnown)],
    )}
    ${
      isOpen &&
      html`<div class="line-open stack-tight" style=${speakerColours(memory)}>
        <p class="quiet">${memory.name ?? memory.role}, ${formatDateTime(memory.at)}</p>
        <p class="memory-text">${memory.text}</p>
        ${coversView(memory)}
      </div>`
    }`,
    isOwn(memory) && renderComponent(MemoryActions, props),
  )
}

function MemoryActions({ memory, onChange, onDeleted }: Props): View {
  const user = useVaultUser()
  const { id, text } = memory
  const excerpt = excerptOf(memory)
  const action = { kind: 'plain', about: excerpt } as const
  return html`${dialogButton('Lineage', onClose => renderComponent(Lineage, { memory, onClose }), action)}
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
        message: html`<blockquote class="quote">${excerpt}${text.length > 60 && ' …'}</blockquote>
          <p>It is removed from both stores at once, and cannot be brought back.</p>`,
        act: () => deleteMemory(id, user),
        onDone: () => onDeleted(id),
        done: 'The memory is deleted.',
      }),
    ]
  }
  ${copyButton('Copy id', id, action)}`
}

async function deleteMemory(id: string, user: string | undefined): Promise<void> {
  const request = { body: { ids: [id] } }
  const answer = await call('POST /v1/memory/delete-ids', request, undefined, user)
  if ('failed' in answer && answer.failed.length > 0)
    throw new UserError('It could not be deleted now')
}

type RowsOptions = Pick<Props, 'selection' | 'dayKnown'> & {
  updateItems: (update: (items: DisplayedMemory[]) => DisplayedMemory[]) => void
}

/** Rows of the memories of a list, which follows what is edited and deleted. */
export const memoryRows = (
  memories: readonly DisplayedMemory[],
  { updateItems, ...options }: RowsOptions,
): View =>
  rows(
    memories.map(memory => [
      memory.id,
      renderComponent(MemoryRow, {
        ...options,
        memory,
        onChange: (id, changed) =>
          updateItems(all => all.map(one => (one.id === id ? { ...one, ...changed } : one))),
        onDeleted: id => updateItems(all => all.filter(one => one.id !== id)),
      }),
    ]),
  )

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
    fields: html`${textAreaField({ ...words.fields.editText, ...of('text') })}
    ${textField({
      ...words.fields.editEnd,
      type: 'datetime-local',
      ...of('end'),
      min: toDateTimeInput(Date.now()),
    })}`,
  })
}
