import { useState } from 'preact/hooks'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { dialog } from '#api/console/app/parts/dialog.ts'
import { showToast } from '#api/console/app/toasts.ts'

type Props = { title: string; explanation: string; secret: string; onClose: () => void }

function SecretDialog({ title, explanation, secret, onClose }: Props): View {
  const [copied, setCopied] = useState(false)
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(secret)
    setCopied(true)
    showToast('Copied.')
  }
  return dialog({
    title,
    onClose,
    children: html`<div class="stack">
      <p>${explanation}</p>
      <code class="secret">${secret}</code>
      <div class="actions">
        ${
          'clipboard' in navigator &&
          html`<button type="button" class="button" onClick=${copy}>
            ${copied ? 'Copied' : 'Copy'}
          </button>`
        }
        <button type="button" class="button button-main" onClick=${onClose}>I have kept it</button>
      </div>
    </div>`,
  })
}

/** Displays a key that the service returns only once. */
export const secretDialog = (props: Props): View => renderComponent(SecretDialog, props)
