import { useState } from 'preact/hooks'
import { formatBytes } from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { writeClipboard } from '#api/console/app/parts/clipboard.ts'
import { showToast } from '#api/console/app/toasts.ts'

export type ButtonOptions = {
  kind?: 'main' | 'danger' | 'plain' | 'link' | 'end' | undefined
  disabled?: boolean
  /** What the button acts on: screen readers add it to the label. */
  about?: string | undefined
}

/** @param act undefined submits the form of the button */
export const button = (
  label: string,
  act?: () => unknown,
  { kind, disabled, about }: ButtonOptions = {},
): View =>
  html`<button
    type=${act ? 'button' : 'submit'}
    class=${buttonClass(kind)}
    aria-label=${about && `${label}: ${about}`}
    disabled=${disabled}
    onClick=${act && (() => act())}
  >
    ${label}
  </button>`

export const buttonLink = (
  label: string,
  href: string,
  { kind, about }: ButtonOptions = {},
): View =>
  html`<a class=${buttonClass(kind)} href=${href} aria-label=${about && `${label}: ${about}`}>
    ${label}
  </a>`

const buttonClass = (kind: ButtonOptions['kind']): string =>
  kind ? `button button-${kind}` : 'button'

/** Actions that are rarer than those beside it, behind one button. @param about whose they are */
export const moreMenu = (about: string, actions: readonly View[]): View =>
  html`<details class="menu" onToggle=${closeOutside}>
    <summary class="button" aria-label=${`More: ${about}`}>More</summary>
    <div class="menu-actions">${actions}</div>
  </details>`

/** An open menu closes when something outside of it is pressed or has the focus, and by Escape. */
function closeOutside({ currentTarget }: Event): void {
  const menu = currentTarget as HTMLDetailsElement
  if (!menu.open) return
  const events = ['pointerdown', 'focusin', 'keydown'] as const
  const onEvent = (event: Event): void => {
    const isOutside = event.type !== 'keydown' && !menu.contains(event.target as Node)
    const isEscape = (event as KeyboardEvent).key === 'Escape' && !menu.querySelector('dialog')
    if (!isOutside && !isEscape) return
    menu.open = false
    for (const name of events) removeEventListener(name, onEvent)
  }
  for (const name of events) addEventListener(name, onEvent)
}

export const copyButton = (label: string, text: string, options: ButtonOptions = {}): View =>
  button(label, () => copyText(text), options)

/** Copies a text, and says so. @returns whether it did */
export async function copyText(text: string): Promise<boolean> {
  const isCopied = await writeClipboard(text)
  showToast(isCopied ? 'Copied.' : 'The browser did not allow copying.')
  return isCopied
}

type DownloadProps = {
  label: string
  kind?: 'main' | undefined
  /** @param onBytes receives the number of bytes so far */
  download: (onBytes: (bytes: number) => void) => Promise<void>
}

function DownloadButton({ label, kind, download }: DownloadProps): View {
  const [bytes, setBytes] = useState<number>()
  const start = async (): Promise<void> => {
    setBytes(0)
    await download(setBytes)
    setBytes(undefined)
  }
  return button(bytes === undefined ? label : `Downloading, ${formatBytes(bytes)} …`, start, {
    kind,
    disabled: bytes !== undefined,
  })
}

/** A button that shows the bytes received while its download runs. */
export const downloadButton = (props: DownloadProps): View => renderComponent(DownloadButton, props)
