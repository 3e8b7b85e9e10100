import { useLayoutEffect, useState } from 'preact/hooks'
import { html, type View } from '#api/console/app/html.ts'

type Undo = () => unknown
type Toast = { id: number; text: string; undo?: Undo | undefined }

let lastId = 0
let toasts: Toast[] = []
const listeners = new Set<(toasts: Toast[]) => void>()
const toastMs = 5_000
const undoMs = 20_000

const setToasts = (newToasts: Toast[]): void => {
  toasts = newToasts
  for (const listener of listeners) listener(newToasts)
}

const close = (id: number): void => setToasts(toasts.filter(toast => toast.id !== id))

/**
 * Displays a message for some seconds; screen readers announce it.
 *
 * @param undo adds a button that takes back what was done; the message stays longer
 */
export function showToast(message: string, undo?: Undo): void {
  const id = ++lastId
  setToasts([...toasts.slice(-2), { id, text: message, undo }])
  setTimeout(() => close(id), undo ? undoMs : toastMs)
}

/** The live region for messages; it must be on the page before the first one. */
export function ToastRegion(): View {
  const [visible, setVisible] = useState(toasts)
  useLayoutEffect(() => {
    listeners.add(setVisible)
    return () => void listeners.delete(setVisible)
  }, [])
  return html`<div class="toasts stack-tight" role="status" aria-live="polite">
    ${visible.map(
      ({ id, text, undo }) =>
        html`<p key=${id}>
          ${text}
          ${
            undo &&
            html`<button
              type="button"
              class="button"
              onClick=${() => {
                close(id)
                undo()
              }}
            >
              Undo
            </button>`
          }
        </p>`,
    )}
  </div>`
}
