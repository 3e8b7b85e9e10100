import { useLayoutEffect, useState } from 'preact/hooks'
import { html, type View } from '#api/console/app/html.ts'

type Said = { id: number; words: string }

let last = 0
let spoken: Said[] = []
const listeners = new Set<(said: Said[]) => void>()
const staysMs = 5_000

const tell = (said: Said[]): void => {
  spoken = said
  for (const listener of listeners) listener(said)
}

/** Tells that something was done: shown for some seconds, and read out by screen readers. */
export function say(words: string): void {
  const id = ++last
  tell([...spoken.slice(-2), { id, words }])
  setTimeout(() => tell(spoken.filter(said => said.id !== id)), staysMs)
}

/** Where what is said appears; there once, always. */
export function SaidRegion(): View {
  const [said, setSaid] = useState(spoken)
  useLayoutEffect(() => {
    listeners.add(setSaid)
    return () => void listeners.delete(setSaid)
  }, [])
  return html`<div class="said" role="status" aria-live="polite">
    ${said.map(({ id, words }) => html`<p key=${id} class="said-line">${words}</p>`)}
  </div>`
}
