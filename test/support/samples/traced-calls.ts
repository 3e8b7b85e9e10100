import type { ProxyFixture } from '#test/support/doubles/model-provider/proxy-fixture.ts'

/** A model call, the bytes that its provider got last, and its trace. */
export type TracedCall = {
  status: number
  body: string
  sent: Buffer
  /** The `X-Memory-Trace` of the answer; null without one. */
  trace: string | null
}

/** Sends model calls with a key. */
export const tracedCalls =
  ({ provider, base }: Pick<ProxyFixture, 'provider' | 'base'>, key: string) =>
  async (path: string, body: string, headers: Record<string, string> = {}): Promise<TracedCall> => {
    const response = await fetch(base + path, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-memory-key': key,
        'x-provider-key': 'sk-own',
        ...headers,
      },
      body,
    })
    await response.bytes()
    const sent = provider.requests.at(-1)?.body ?? Buffer.alloc(0)
    return { status: response.status, body, sent, trace: response.headers.get('x-memory-trace') }
  }
