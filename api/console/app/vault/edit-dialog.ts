import { useState } from 'preact/hooks'
import { useAction } from '#api/console/app/use-query.ts'
import { call } from '#api/console/app/api-call.ts'
import { html, type View } from '#api/console/app/html.ts'
import { dialogForm } from '#api/console/app/parts/dialog.ts'
import { textAreaField, textField } from '#api/console/app/parts/fields.ts'
import { showToast } from '#api/console/app/toasts.ts'
import { forgetAnswers } from '#api/console/app/vault/read-once.ts'
import type { DisplayedMemory } from '#api/console/app/vault/displayed-memory.ts'
import { toDateTimeInput } from '#api/console/app/format.ts'

export type EditDialogProps = {
  memory: DisplayedMemory
  onClose: () => void
  onChange: (id: string, changed: Pick<DisplayedMemory, 'text' | 'expiresAt'>) => void
}

/** Edits the text and expiry of a memory; its date, tier and importance stay. */
export function EditDialog({ memory, onClose, onChange }: EditDialogProps): View {
  const before = memory.expiresAt ? toDateTimeInput(memory.expiresAt) : ''
  const [text, setText] = useState(memory.text)
  const [end, setEnd] = useState(before)
  const actionState = useAction()
  return dialogForm({
    title: 'Edit memory',
    verb: 'Save',
    actionState,
    onClose,
    act: async () => {
      const expires_at = end === '' ? null : new Date(end).toISOString()
      const answer = await call('POST /v1/memory/edit', {
        // The field has minutes only: an unchanged one must not cut the stored milliseconds.
        body: { memory_id: memory.id, text, ...(end !== before && { expires_at }) },
      })
      forgetAnswers()
      onChange(memory.id, { text, expiresAt: answer.expires_at })
      showToast('The memory is changed.')
    },
    fields: html`${textAreaField({
      label: 'Text',
      value: text,
      onValue: setText,
      rows: 8,
      required: true,
      maxlength: 32_000,
      hint: 'It keeps its date, tier and importance, and is found by its new words from now on.',
    })}
    ${textField({
      label: 'Expires',
      type: 'datetime-local',
      value: end,
      onValue: setEnd,
      min: toDateTimeInput(Date.now()),
      hint: 'From then on it is gone, as if it were deleted. Empty: it stays.',
    })}`,
  })
}
