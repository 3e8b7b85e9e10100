import { setImmediate as turn, setTimeout as delay } from 'node:timers/promises'
import type { Responder } from '#test/support/doubles/recording-server.ts'

type ResponseOptions = {
  status?: number
  headers?: Record<string, string>
  /** Milliseconds between two chunks. */
  everyMs?: number
}

const streaming = { 'content-type': 'text/event-stream; charset=utf-8' }
const json = { 'content-type': 'application/json' }

/** Answers with exactly these bytes, one write per chunk. */
export function respondWith(
  chunks: readonly (Uint8Array | string)[],
  { status = 200, headers = streaming, everyMs = 0 }: ResponseOptions = {},
): Responder {
  return async (_seen, answer) => {
    answer.head(status, headers)
    for (const [index, chunk] of chunks.entries()) {
      if (index > 0) await (everyMs > 0 ? delay(everyMs) : turn())
      await answer.write(chunk)
    }
    answer.end()
  }
}

/** Answers with JSON; a string is sent unchanged. */
export const respondJson = (
  body: unknown,
  { status = 200, headers = {} }: Pick<ResponseOptions, 'status' | 'headers'> = {},
): Responder =>
  respondWith([typeof body === 'string' ? body : JSON.stringify(body)], {
    status,
    headers: { ...json, ...headers },
  })

/** Splits bytes into chunks of `size`, also inside UTF-8 sequences and events. */
export function splitBytes(bytes: Uint8Array | string, size: number): Buffer[] {
  const buffer = Buffer.from(bytes as string)
  return Array.from({ length: Math.ceil(buffer.length / size) }, (_, index) =>
    buffer.subarray(index * size, (index + 1) * size),
  )
}

/** Sends these chunks and then breaks the connection. */
export function disconnectAfter(
  chunks: readonly (Uint8Array | string)[],
  { status = 200, headers = streaming }: Pick<ResponseOptions, 'status' | 'headers'> = {},
): Responder {
  return async (_seen, answer) => {
    answer.head(status, headers)
    for (const chunk of chunks) await answer.write(chunk)
    await delay(20)
    answer.cut()
  }
}

/** Sends these chunks and then nothing, until the client disconnects. */
export function stallAfter(
  chunks: readonly (Uint8Array | string)[],
  headers: Record<string, string> = streaming,
): Responder {
  return async (_seen, answer) => {
    answer.head(200, headers)
    for (const chunk of chunks) await answer.write(chunk)
  }
}

export const neverRespond: Responder = () => {}

export const redirectTo = (location: string, status = 307): Responder =>
  respondWith([], { status, headers: { location } })

/** Streams `bytesMax` bytes as fast as they are read; they are counted, not recorded. */
export function streamBytes(bytesMax: number, chunk: string): Responder {
  const bytes = Buffer.from(chunk)
  return async (seen, answer) => {
    answer.head(200, streaming)
    while (seen.response.bytes < bytesMax && !answer.disconnected.aborted) {
      await answer.write(bytes, { keep: false })
    }
    await answer.write('data: [DONE]\n\n')
    answer.end()
  }
}

/** An error in the format of each family, with the headers its clients use. */
export function respondError(
  family: 'openai' | 'anthropic' | 'google',
  status: number,
  headers: Record<string, string> = {},
): Responder {
  const message = `told to answer ${status}`
  const bodies = {
    openai: { error: { message, type: 'invalid_request_error', param: null, code: 'told' } },
    anthropic: { type: 'error', error: { type: errorTypes[status] ?? 'api_error', message } },
    google: { error: { code: status, message, status: 'INVALID_ARGUMENT', details: [] } },
  }
  const ids = {
    openai: { 'x-request-id': 'req_openai_1', 'openai-processing-ms': '12' },
    anthropic: { 'request-id': 'req_anthropic_1' },
    google: { 'x-gemini-service-tier': 'standard' },
  }
  return respondJson(JSON.stringify(bodies[family], null, 2), {
    status,
    headers: { ...ids[family], ...headers },
  })
}

const errorTypes: Record<number, string> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  429: 'rate_limit_error',
  529: 'overloaded_error',
}
