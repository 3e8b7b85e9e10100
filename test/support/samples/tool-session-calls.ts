import type { ProxyFixture } from '#test/support/doubles/model-provider/proxy-fixture.ts'
import type { Family } from '#test/support/samples/tool-sessions.ts'

type Unit = ReturnType<Family['units']>[number]

/** A call of a session: what the client wrote, what the provider got, and what the answer said about it. */
export type SessionCall = {
  own: Unit[]
  units: Unit[]
  sent: string
  status: string | null
  abstained: string | null
  /** Null where the header is left out. */
  isSafe: boolean | null
  bytes: number
}

/** Sends the requests of a session with one key. */
export const sessionCalls =
  ({ provider, base }: Pick<ProxyFixture, 'provider' | 'base'>, key: string, family: Family) =>
  async (body: string, headers: Record<string, string> = {}): Promise<SessionCall> => {
    const response = await fetch(base + family.path, {
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
    if (response.status !== 200) throw new Error(`status ${response.status}`)
    const sent = provider.requests.at(-1)!.body.toString()
    const safe = response.headers.get('x-memory-cache-safe')
    return {
      own: family.units(body),
      units: family.units(sent),
      sent,
      status: response.headers.get('x-memory-status'),
      abstained: response.headers.get('x-memory-abstained'),
      isSafe: safe === null ? null : safe === 'true',
      bytes: Number(response.headers.get('x-memory-cache-bytes')),
    }
  }

/** How many bytes of the client's two requests begin with; blocks are not counted. */
function sharedBytes(one: readonly Unit[], other: readonly Unit[]): number {
  let bytes = 0
  for (const [index, { text, isBlock }] of one.entries()) {
    if (other[index]?.text !== text) break
    if (!isBlock) bytes += Buffer.byteLength(text)
  }
  return bytes
}

/** Bytes of the client's that a provider's cache of the earlier request serves less than without memory. */
export const lostBytes = (before: SessionCall, after: SessionCall): number =>
  sharedBytes(before.own, after.own) - sharedBytes(before.units, after.units)
