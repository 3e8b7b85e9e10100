import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { html, renderComponent, type Children, type View } from '#api/console/app/html.ts'
import { button, copyText, type ButtonOptions } from '#api/console/app/parts/buttons.ts'
import { onSubmit } from '#api/console/app/parts/fields.ts'
import { faultNote } from '#api/console/app/parts/notes.ts'
import { useAction, type Action } from '#api/console/app/queries.ts'

type DialogProps = {
  title: string
  onClose: () => void
  children?: Children
  /** Uses more of the window. */
  wide?: boolean
  /** Closes by its own buttons alone: neither Escape nor a cross. */
  sticky?: boolean
}

/** The browser keeps the focus in the dialog; the dialog gives it back when it closes. */
function Dialog({ title, onClose, children, wide = false, sticky = false }: DialogProps): View {
  const element = useRef<HTMLDialogElement>(null)
  const heading = useId()
  // In a layout effect: the next key belongs to the dialog.
  useLayoutEffect(() => {
    const opened = element.current
    const before = document.activeElement
    opened?.showModal()
    // The browser focuses the first control, which closes the dialog; a form is opened to write in it.
    opened?.querySelector<HTMLElement>('.dialog-body :is(input, textarea, select)')?.focus()
    return () => {
      opened?.close()
      if (before instanceof HTMLElement && before.isConnected) before.focus()
    }
  }, [])
  return html`<dialog
    ref=${element}
    class=${wide ? 'dialog dialog-wide' : 'dialog'}
    aria-labelledby=${heading}
    onCancel=${(event: Event) => {
      event.preventDefault()
      if (!sticky) onClose()
    }}
    onKeyDown=${(event: KeyboardEvent) => {
      // A browser closes a dialog by the second Escape, whatever the first was answered.
      if (sticky && event.key === 'Escape') event.preventDefault()
    }}
  >
    <div class="section-head dialog-head">
      <h2 id=${heading}>${title}</h2>
      ${
        !sticky &&
        html`<button
          type="button"
          class="button button-plain"
          aria-label="Close"
          onClick=${onClose}
        >
          <span aria-hidden="true">✕</span>
        </button>`
      }
    </div>
    <div class="dialog-body">${children}</div>
  </dialog>`
}

export const dialog = (props: DialogProps): View => renderComponent(Dialog, props)

type FormProps = Action & {
  title: string
  verb: string
  onClose: () => void
  danger?: boolean
  fields: Children
}

function DialogForm({ title, verb, onClose, danger = false, fields, ...action }: FormProps): View {
  const { run, isRunning, fault } = useAction()
  return dialog({
    title,
    onClose,
    children: html`<form
      class="stack"
      onSubmit=${onSubmit(async () => (await run(action)) && onClose())}
    >
      ${fields} ${faultNote(fault)}
      <div class="actions">
        ${button('Cancel', onClose)}
        ${button(isRunning ? 'Working …' : verb, undefined, { kind: danger ? 'danger' : 'main', disabled: isRunning })}
      </div>
    </form>`,
  })
}

/** A form in a dialog. It stays open when its action fails. */
export const dialogForm = (props: FormProps): View => renderComponent(DialogForm, props)

type DialogButtonProps = ButtonOptions & { label: string; open: (close: () => void) => View }

function DialogButton({ label, open, ...options }: DialogButtonProps): View {
  const [isOpen, setOpen] = useState(false)
  return html`${button(label, () => setOpen(true), options)} ${isOpen && open(() => setOpen(false))}`
}

export const dialogButton = (
  label: string,
  open: DialogButtonProps['open'],
  options: ButtonOptions = {},
): View => renderComponent(DialogButton, { label, open, ...options })

type Confirmation = Action & {
  title: string
  message: Children
  /** Undefined: that of the button. */
  verb?: string
  /** The text to type before an action that cannot be undone. */
  confirmationText?: string
}

export const confirmDialog = ({
  message,
  confirmationText,
  ...props
}: Confirmation & { verb: string; onClose: () => void }): View =>
  dialogForm({
    ...props,
    danger: true,
    fields: [
      typeof message === 'string' ? html`<p>${message}</p>` : message,
      confirmationText !== undefined &&
        html`<label class="field stack-close">
          <span class="field-label">Type <b>${confirmationText}</b> to confirm</span>
          <input required pattern=${confirmationText} autocomplete="off" />
        </label>`,
    ],
  })

/** A button for a destructive action, which asks for confirmation. */
export const confirmButton = (
  label: string,
  { kind, about, ...confirmation }: ButtonOptions & Confirmation,
): View =>
  dialogButton(label, onClose => confirmDialog({ verb: label, ...confirmation, onClose }), {
    kind,
    about,
  })

type ActionButtonProps = ButtonOptions & Action & { label: string }

function ActionButton({ label, kind, about, ...action }: ActionButtonProps): View {
  const { run, isRunning, fault } = useAction()
  return html`${faultNote(fault)}
  ${button(label, () => run(action), { kind, about, disabled: isRunning })}`
}

/** A button that runs an action of the service. It displays a failure. */
export const actionButton = (label: string, props: Omit<ActionButtonProps, 'label'>): View =>
  renderComponent(ActionButton, { label, ...props })

type SecretProps = { title: string; explanation: string; secret: string; onClose?: () => void }

function SecretDialog({ title, explanation, secret, onClose }: Required<SecretProps>): View {
  const [isCopied, setCopied] = useState(false)
  const copy = async (): Promise<void> => {
    setCopied(await copyText(secret))
  }
  return dialog({
    title,
    onClose,
    sticky: true,
    children: html`<div class="stack">
      <p>${explanation}</p>
      <code class="secret">${secret}</code>
      <div class="actions">
        ${button(isCopied ? 'Copied' : 'Copy', copy)}
        ${button('I have copied it', onClose, { kind: 'main' })}
      </div>
    </div>`,
  })
}

/** Displays keys that the service returns only once: the function that shows one, and its dialog. */
export function useSecret(): [show: (props: SecretProps) => void, view: View | false] {
  const [props, setProps] = useState<SecretProps>()
  const close = (): void => {
    setProps(undefined)
    props?.onClose?.()
  }
  return [
    setProps,
    props !== undefined && renderComponent(SecretDialog, { ...props, onClose: close }),
  ]
}
