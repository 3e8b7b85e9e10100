import { useState } from 'preact/hooks'
import { useDoing } from '#api/console/app/asked.ts'
import { html, part, type Children, type View } from '#api/console/app/html.ts'
import { dialogForm } from '#api/console/app/parts/dialog.ts'

type Props = {
  title: string
  words: Children
  verb: string
  act: () => Promise<void>
  onClose: () => void
  /** What must be typed before it is done, for what cannot be undone. */
  typed?: string
}

function Confirm({ title, words, verb, act, onClose, typed }: Props): View {
  const doing = useDoing()
  const [given, setGiven] = useState('')
  const fields = html`<div class="stack">${words}</div>
    ${
      typed !== undefined &&
      html`<label class="field">
        <span class="field-label">Type <b>${typed}</b> to confirm</span>
        <input
          value=${given}
          required
          pattern=${typed}
          autocomplete="off"
          onInput=${(event: Event) => setGiven((event.currentTarget as HTMLInputElement).value)}
        />
      </label>`
    }`
  const fieldsView = html`<div class="stack">${fields}</div>`
  return dialogForm({ title, verb, doing, onClose, act, danger: true, fields: fieldsView })
}

/** Asks before something that takes away; a fault keeps it open. */
export const confirm = (props: Props): View => part(Confirm, props)
