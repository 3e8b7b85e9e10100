import { faultOf, stream } from '#api/console/app/call.ts'
import { say } from '#api/console/app/said.ts'

export type ExportOptions = {
  session?: string
  vectors?: boolean
  sessions?: boolean
  /** Hears how many bytes have come. */
  onBytes?: (bytes: number) => void
}

/** Downloads a vault, or one session of it, as a file of JSON lines. A fault is said. */
export async function exportFile(options: ExportOptions): Promise<void> {
  try {
    await download(options)
    say('The export is downloaded.')
  } catch (error) {
    say(`The export failed: ${faultOf(error).words}`)
  }
}

async function download({
  session,
  vectors,
  sessions = true,
  onBytes,
}: ExportOptions): Promise<void> {
  const query = new URLSearchParams({
    vectors: String(vectors ?? false),
    sessions: String(sessions),
  })
  const response = await stream(
    `/v1/memory/export?${session === undefined ? query : `vectors=${vectors ?? false}`}`,
    // Header values are bytes; the service reads them as UTF-8.
    session === undefined ? {} : { 'X-Session-ID': latin1(session) },
  )
  const parts: Uint8Array<ArrayBuffer>[] = []
  let bytes = 0
  const reader = response.body!.getReader()
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    parts.push(read.value)
    bytes += read.value.length
    onBytes?.(bytes)
  }
  const address = URL.createObjectURL(new Blob(parts, { type: 'application/x-ndjson' }))
  const link = document.createElement('a')
  link.href = address
  link.download = `memory-vault-${new Date().toISOString().slice(0, 10)}.jsonl`
  link.click()
  setTimeout(() => URL.revokeObjectURL(address), 60_000)
}

/** Text as `fetch` takes it in a header: a character for each byte of its UTF-8. */
export const latin1 = (text: string): string =>
  String.fromCharCode(...new TextEncoder().encode(text))
