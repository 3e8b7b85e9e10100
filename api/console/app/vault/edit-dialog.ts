import { useState } from 'preact/hooks'
import { useDoing } from '#api/console/app/asked.ts'
import { call } from '#api/console/app/call.ts'
import { html, type View } from '#api/console/app/html.ts'
import { dialogForm } from '#api/console/app/parts/dialog.ts'
import { areaField, textField } from '#api/console/app/parts/fields.ts'
import { say } from '#api/console/app/said.ts'
import type { Shown } from '#api/console/app/vault/shown.ts'
import { inputMomentOf } from '#api/console/app/words.ts'

export type EditDialogProps = {
  memory: Shown
  onClose: () => void
  onChange: (id: string, changed: Pick<Shown, 'text' | 'expires'>) => void
}

/** Another text for a memory, and when it is to be gone; its date, tier and importance stay. */
export function EditDialog({ memory, onClose, onChange }: EditDialogProps): View {
  const before = memory.expires ? inputMomentOf(memory.expires) : ''
  const [text, setText] = useState(memory.text)
  const [end, setEnd] = useState(before)
  const doing = useDoing()
  return dialogForm({
    title: 'Edit memory',
    verb: 'Save',
    doing,
    onClose,
    act: async () => {
      const expires_at = end === '' ? null : new Date(end).toISOString()
      const answer = await call('POST /v1/memory/edit', {
        // To the minute is not to the millisecond: what nobody has touched stays.
        body: { memory_id: memory.id, text, ...(end !== before && { expires_at }) },
      })
      onChange(memory.id, { text, expires: answer.expires_at })
      say('The memory is changed.')
    },
    fields: html`${areaField({
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
      min: inputMomentOf(Date.now()),
      hint: 'From then on it is gone, as if it were deleted. Empty: it stays.',
    })}`,
  })
}
