import { useLayoutEffect, useState } from 'preact/hooks'
import { html, type View } from '#api/console/app/html.ts'

type Toast = { id: number; text: string }

let lastId = 0
let toasts: Toast[] = []
const listeners = new Set<(toasts: Toast[]) => void>()
const toastMs = 5_000

const setToasts = (newToasts: Toast[]): void => {
  toasts = newToasts
  for (const listener of listeners) listener(newToasts)
}

/** Displays a message for some seconds; screen readers announce it. */
export function showToast(message: string): void {
  const id = ++lastId
  setToasts([...toasts.slice(-2), { id, text: message }])
  setTimeout(() => setToasts(toasts.filter(toast => toast.id !== id)), toastMs)
}

/** The live region for messages; it must be on the page before the first one. */
export function ToastRegion(): View {
  const [visible, setVisible] = useState(toasts)
  useLayoutEffect(() => {
    listeners.add(setVisible)
    return () => void listeners.delete(setVisible)
  }, [])
  return html`<div class="toasts stack-tight" role="status" aria-live="polite">
    ${visible.map(({ id, text }) => html`<p key=${id}>${text}</p>`)}
  </div>`
}
