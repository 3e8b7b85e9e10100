import { useLayoutEffect, useState } from 'preact/hooks'
import { html, type View } from '#api/console/app/html.ts'

type Toast = { id: number; text: string }

let lastId = 0
let toasts: Toast[] = []
const listeners = new Set<(said: Toast[]) => void>()
const toastMs = 5_000

const setToasts = (newToasts: Toast[]): void => {
  toasts = newToasts
  for (const listener of listeners) listener(newToasts)
}

/** Tells that something was done: shown for some seconds, and read out by screen readers. */
export function showToast(words: string): void {
  const id = ++lastId
  setToasts([...toasts.slice(-2), { id, text: words }])
  setTimeout(() => setToasts(toasts.filter(said => said.id !== id)), toastMs)
}

/** Where what is said appears; there once, always. */
export function ToastRegion(): View {
  const [visible, setVisible] = useState(toasts)
  useLayoutEffect(() => {
    listeners.add(setVisible)
    return () => void listeners.delete(setVisible)
  }, [])
  return html`<div class="said" role="status" aria-live="polite">
    ${visible.map(({ id, text }) => html`<p key=${id} class="said-line">${text}</p>`)}
  </div>`
}
