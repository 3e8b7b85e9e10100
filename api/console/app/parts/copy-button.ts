import { html, type View } from '#api/console/app/html.ts'
import { showToast } from '#api/console/app/toasts.ts'

type Props = {
  label: string
  text: string
  /** What a screen reader calls the button, where its label alone does not say it. */
  title?: string
  plain?: boolean
}

/** A button that copies a text; nothing where the browser has no clipboard, as without https. */
export const copyButton = ({ label, text, title, plain = false }: Props): View | null =>
  'clipboard' in navigator
    ? html`<button
        type="button"
        class=${plain ? 'button button-plain' : 'button'}
        aria-label=${title}
        onClick=${() => copy(text)}
      >
        ${label}
      </button>`
    : null

async function copy(text: string): Promise<void> {
  await navigator.clipboard.writeText(text).then(
    () => showToast('Copied.'),
    () => showToast('The browser did not allow copying.'),
  )
}
