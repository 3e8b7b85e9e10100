import { toFault, fetchStream } from '#api/console/app/api-call.ts'
import { isoDay } from '#api/console/app/format.ts'
import { showToast } from '#api/console/app/toasts.ts'

type OnBytes = (bytes: number) => void

export type ExportOptions = {
  session?: string
  vectors?: boolean
  sessions?: boolean
  onBytes?: OnBytes
}

/** Downloads a vault, or one session of it, as a file of JSON lines. Displays a failure. */
export function exportFile({
  session,
  vectors = false,
  sessions = true,
  onBytes,
}: ExportOptions): Promise<void> {
  const query =
    session === undefined ? `vectors=${vectors}&sessions=${sessions}` : `vectors=${vectors}`
  // Header values are bytes; the service reads them as UTF-8.
  const headers = session === undefined ? {} : { 'X-Session-ID': latin1(session) }
  return downloadLines(`/v1/memory/export?${query}`, 'memory-vault', { headers, onBytes })
}

/**
 * Downloads a response of JSON lines as a file. Displays a failure.
 *
 * @param name of the file, without date and extension
 */
export async function downloadLines(
  path: string,
  name: string,
  { headers = {}, onBytes }: { headers?: Record<string, string>; onBytes?: OnBytes | undefined },
): Promise<void> {
  try {
    await download(await fetchStream(path, headers), name, onBytes)
    showToast('The export is downloaded.')
  } catch (error) {
    showToast(`The export failed: ${toFault(error).message}`)
  }
}

async function download(response: Response, name: string, onBytes?: OnBytes): Promise<void> {
  const parts: Uint8Array<ArrayBuffer>[] = []
  let bytes = 0
  const reader = response.body!.getReader()
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    parts.push(read.value)
    bytes += read.value.length
    onBytes?.(bytes)
  }
  const day = isoDay(Date.now())
  saveFile(`${name}-${day}.jsonl`, new Blob(parts, { type: 'application/x-ndjson' }))
}

/** Gives a file to the browser, which keeps it among its downloads. */
export function saveFile(name: string, content: Blob | string): void {
  const blob = typeof content === 'string' ? new Blob([content], { type: 'text/csv' }) : content
  const address = URL.createObjectURL(blob)
  const link = document.createElement('a')
  link.href = address
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(address), 60_000)
}

/** Encodes text for a header of `fetch`: one character for each byte of its UTF-8. */
const latin1 = (text: string): string => String.fromCharCode(...new TextEncoder().encode(text))
