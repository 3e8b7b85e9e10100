import { useState } from 'preact/hooks'
import { useDoing } from '#api/console/app/asked.ts'
import { call } from '#api/console/app/call.ts'
import type { View } from '#api/console/app/html.ts'
import { dialogForm } from '#api/console/app/parts/dialog.ts'
import { areaField } from '#api/console/app/parts/fields.ts'
import { say } from '#api/console/app/said.ts'
import type { Shown } from '#api/console/app/vault/shown.ts'

type Props = { memory: Shown; onClose: () => void; onText: (id: string, text: string) => void }

/** Another text for a memory; its date, tier and importance stay. */
export function EditDialog({ memory, onClose, onText }: Props): View {
  const [text, setText] = useState(memory.text)
  const doing = useDoing()
  return dialogForm({
    title: 'Edit memory',
    verb: 'Save',
    doing,
    onClose,
    act: async () => {
      await call('POST /v1/memory/edit', { body: { memory_id: memory.id, text } })
      onText(memory.id, text)
      say('The memory is changed.')
    },
    fields: areaField({
      label: 'Text',
      value: text,
      onValue: setText,
      rows: 8,
      required: true,
      maxlength: 32_000,
      hint: 'It keeps its date, tier and importance, and is found by its new words from now on.',
    }),
  })
}
