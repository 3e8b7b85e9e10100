export type RecordedResponse = {
  url: string
  status: number
  headers: Headers
  /** The body as far as it was read, in the chunks it came in. */
  chunks: Uint8Array[]
  /** The body was read to its end. */
  isComplete: boolean
}

/**
 * A `fetch` that keeps what its answers were, byte for byte and while they are read; a reader that gives
 * up is passed on. `only` limits it to addresses that begin so.
 */
export function createRecordingFetch(only: readonly string[] = ['']): {
  fetch: typeof fetch
  heard: RecordedResponse[]
} {
  const heard: RecordedResponse[] = []
  const plain = globalThis.fetch
  const listening: typeof fetch = async (input, init) => {
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
    heard.push(one)
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
  return { fetch: listening, heard }
}
