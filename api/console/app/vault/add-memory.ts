import { call } from '#api/console/app/api-call.ts'
import { canWrite } from '#api/console/app/credential.ts'
import { renderComponent, type View } from '#api/console/app/html.ts'
import type { ButtonOptions } from '#api/console/app/parts/buttons.ts'
import { dialogButton, dialogForm } from '#api/console/app/parts/dialogs.ts'
import { selectField, textAreaField, useFields } from '#api/console/app/parts/fields.ts'
import { html } from '#api/console/app/html.ts'

type Props = { onAdded: () => void; onClose: () => void }

/** A button that stores a memory typed by hand. */
export const addMemoryButton = (onAdded: () => void, options: ButtonOptions = {}): View | false =>
  canWrite() &&
  dialogButton('Add a memory', onClose => renderComponent(AddMemory, { onAdded, onClose }), options)

function AddMemory({ onAdded, onClose }: Props): View {
  const { fields, of } = useFields<{ text: string; role: 'user' | 'assistant' }>({
    text: '',
    role: 'user',
  })
  return dialogForm({
    title: 'Add a memory',
    verb: 'Store',
    onClose,
    act: () =>
      call('POST /v1/memory/ingest', {
        query: { wait: true },
        body: { messages: [{ role: fields.role, content: fields.text }] },
      }),
    done: 'It is remembered.',
    onDone: onAdded,
    fields: html`${textAreaField({
      label: 'Text',
      ...of('text'),
      required: true,
      maxlength: 20_000,
      hint: 'As it would be said, such as “My cat is called Ada and she hates thunder.”',
    })}
    ${selectField({
      label: 'Said by',
      ...of('role'),
      choices: { user: 'the user', assistant: 'the assistant' },
    })}`,
  })
}
