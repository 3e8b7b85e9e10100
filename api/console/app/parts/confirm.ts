import { useState } from 'preact/hooks'
import { useAction } from '#api/console/app/use-query.ts'
import { html, renderComponent, type Children, type View } from '#api/console/app/html.ts'
import { dialogForm } from '#api/console/app/parts/dialog.ts'

type Props = {
  title: string
  message: Children
  verb: string
  action: () => Promise<void>
  onClose: () => void
  /** The text to type before an action that cannot be undone. */
  confirmationText?: string
}

function ConfirmDialog({ title, message, verb, action, onClose, confirmationText }: Props): View {
  const actionState = useAction()
  const [input, setInput] = useState('')
  const fields = html`<div class="stack">${message}</div>
    ${
      confirmationText !== undefined &&
      html`<label class="field">
        <span class="field-label">Type <b>${confirmationText}</b> to confirm</span>
        <input
          value=${input}
          required
          pattern=${confirmationText}
          autocomplete="off"
          onInput=${(event: Event) => setInput((event.currentTarget as HTMLInputElement).value)}
        />
      </label>`
    }`
  const fieldsView = html`<div class="stack">${fields}</div>`
  return dialogForm({
    title,
    verb,
    actionState,
    onClose,
    act: action,
    danger: true,
    fields: fieldsView,
  })
}

/** Asks for confirmation of a destructive action; stays open when the action fails. */
export const confirmDialog = (props: Props): View => renderComponent(ConfirmDialog, props)
