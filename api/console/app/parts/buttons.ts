import { useState } from 'preact/hooks'
import { formatBytes } from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { showToast } from '#api/console/app/toasts.ts'

export type ButtonOptions = {
  kind?: 'main' | 'danger' | 'plain' | 'link' | undefined
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

/** Copies a text. Browsers without a clipboard, as on pages without https, get no button. */
export const copyButton = (label: string, text: string, options: ButtonOptions = {}): View | null =>
  'clipboard' in navigator ? button(label, () => copy(text), options) : null

const copy = (text: string): Promise<void> =>
  navigator.clipboard.writeText(text).then(
    () => showToast('Copied.'),
    () => showToast('The browser did not allow copying.'),
  )

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
