import { useId, useLayoutEffect, useRef } from 'preact/hooks'
import type { ActionState } from '#api/console/app/use-query.ts'
import { html, renderComponent, type Children, type View } from '#api/console/app/html.ts'
import { onSubmit } from '#api/console/app/parts/fields.ts'
import { faultNote } from '#api/console/app/parts/query-view.ts'

type Props = {
  title: string
  onClose: () => void
  children?: Children
  /** Uses more of the window. */
  wide?: boolean
}

/** A modal dialog. The browser keeps the focus in it, and restores it afterwards. */
function Dialog({ title, onClose, children, wide = false }: Props): View {
  const element = useRef<HTMLDialogElement>(null)
  const heading = useId()
  // Before the next key, which belongs to the dialog.
  useLayoutEffect(() => {
    const opened = element.current
    const before = document.activeElement
    opened?.showModal()
    // The browser takes the first control, which closes it; a form is opened to write in it.
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
      onClose()
    }}
  >
    <header class="dialog-head">
      <h2 id=${heading}>${title}</h2>
      <button type="button" class="button button-plain" aria-label="Close" onClick=${onClose}>
        <span aria-hidden="true">✕</span>
      </button>
    </header>
    <div class="dialog-body">${children}</div>
  </dialog>`
}

export const dialog = (props: Props & { key?: string }): View => renderComponent(Dialog, props)

/** A form in a dialog, with fields, error and buttons. */
export const dialogForm = ({
  title,
  verb,
  actionState,
  onClose,
  act,
  danger = false,
  fields,
}: {
  title: string
  verb: string
  actionState: ActionState
  onClose: () => void
  act: () => Promise<void>
  danger?: boolean
  fields: Children
}): View =>
  dialog({
    title,
    onClose,
    children: html`<form
      class="stack"
      onSubmit=${onSubmit(async () => (await actionState.run(act)) && onClose())}
    >
      ${fields} ${faultNote(actionState.fault)}
      <div class="actions">
        <button type="button" class="button" onClick=${onClose}>Cancel</button>
        <button
          class=${danger ? 'button button-danger' : 'button button-main'}
          disabled=${actionState.isRunning}
        >
          ${actionState.isRunning ? 'Working …' : verb}
        </button>
      </div>
    </form>`,
  })
