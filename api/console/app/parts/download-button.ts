import { useState } from 'preact/hooks'
import { html, type View } from '#api/console/app/html.ts'
import { formatBytes } from '#api/console/app/format.ts'

type Props = {
  label: string
  isPrimary?: boolean
  /** @param onBytes is called with the number of bytes received so far */
  download: (onBytes: (bytes: number) => void) => Promise<void>
}

/** A button that shows the bytes received while its download runs. */
export function DownloadButton({ label, isPrimary = false, download }: Props): View {
  const [bytes, setBytes] = useState<number>()
  const start = async (): Promise<void> => {
    setBytes(0)
    await download(setBytes)
    setBytes(undefined)
  }
  return html`<button
    type="button"
    class=${isPrimary ? 'button button-main' : 'button'}
    disabled=${bytes !== undefined}
    onClick=${start}
  >
    ${bytes === undefined ? label : `Downloading, ${formatBytes(bytes)} …`}
  </button>`
}
