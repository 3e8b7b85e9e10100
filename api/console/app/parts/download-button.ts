import { useState } from 'preact/hooks'
import { html, type View } from '#api/console/app/html.ts'
import { formatBytes } from '#api/console/app/format.ts'

type Props = {
  words: string
  main?: boolean
  /** @param onBytes hears how many bytes have come */
  run: (onBytes: (bytes: number) => void) => Promise<void>
}

/** A button that says how far its download is. */
export function DownloadButton({ words, main = false, run }: Props): View {
  const [bytes, setBytes] = useState<number>()
  const start = async (): Promise<void> => {
    setBytes(0)
    await run(setBytes)
    setBytes(undefined)
  }
  return html`<button
    type="button"
    class=${main ? 'button button-main' : 'button'}
    disabled=${bytes !== undefined}
    onClick=${start}
  >
    ${bytes === undefined ? words : `Downloading, ${formatBytes(bytes)} …`}
  </button>`
}
