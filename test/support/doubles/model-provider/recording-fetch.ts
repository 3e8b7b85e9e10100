export type RecordedResponse = {
  url: string
  status: number
  headers: Headers
  /** The chunks of the body that were read. */
  chunks: Uint8Array[]
  /** Whether the body was read to its end. */
  isComplete: boolean
}

/**
 * A `fetch` that records the bytes of its answers while they are read; it forwards the cancellation by a
 * reader. `only` limits the recording to URLs with these prefixes.
 */
export function createRecordingFetch(only: readonly string[] = ['']): {
  fetch: typeof fetch
  recorded: RecordedResponse[]
} {
  const recorded: RecordedResponse[] = []
  const plain = globalThis.fetch
  const recordingFetch: typeof fetch = async (input, init) => {
    const response = await plain(input, init)
    const url = input instanceof Request ? input.url : String(input)
    if (!only.some(start => url.startsWith(start))) return response
    const chunks: Uint8Array[] = []
    const one: RecordedResponse = {
      url,
      status: response.status,
      headers: response.headers,
      chunks,
      isComplete: false,
    }
    recorded.push(one)
    const body = response.body?.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        transform(chunk, onward) {
          chunks.push(chunk.slice())
          onward.enqueue(chunk)
        },
        flush: () => void (one.isComplete = true),
      }),
    )
    const { status, statusText, headers } = response
    return new Response(body ?? null, { status, statusText, headers })
  }
  return { fetch: recordingFetch, recorded }
}
