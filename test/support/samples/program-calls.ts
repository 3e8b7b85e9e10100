import type { Test } from 'tap'
import {
  startRecordingServer,
  type RecordedRequest,
} from '#test/support/doubles/recording-server.ts'
import { providerUrl } from '#test/support/doubles/model-provider.ts'
import type { ProxyFixture } from '#test/support/doubles/model-provider/proxy-fixture.ts'

/** A call of a program, what the provider got of it, and what came back. */
export type ProgramCall = {
  sent: RecordedRequest
  /** Undefined where the call is none of a model. */
  got: RecordedRequest | undefined
  status: string | null
}

export type ProgramGate = {
  /** The address that programs are wired to. */
  origin: string
  /** Calls of models since the last time. */
  takeCalls(): ProgramCall[]
  /** From now on models are called past the service. */
  goDirect(): void
}

const modelPath = /^\/v1(?:beta)?\/(?:responses|models\/[^/]+:\w*[cC]ontent)/

/** Stands between programs and the service, which sees their bytes only after it has kept them. */
export async function startProgramGate(
  t: Test,
  { provider, base }: ProxyFixture,
): Promise<ProgramGate> {
  let calls: ProgramCall[] = []
  let isDirect = false
  const targetOf = (url: string): string => {
    if (!isDirect || !modelPath.test(url)) return base + url
    return url.startsWith('/v1beta')
      ? providerUrl(provider.directOrigin, 'google') + url
      : providerUrl(provider.directOrigin, 'openai') + url.slice('/v1'.length)
  }
  const gate = await startRecordingServer(t, async (sent, answer) => {
    const url = targetOf(sent.url)
    const dropped = ['host', 'connection', 'content-length', 'accept-encoding', 'transfer-encoding']
    if (!url.startsWith(base)) dropped.push('x-memory-key')
    const headers = sent.headers.filter(([name]) => !dropped.includes(name.toLowerCase()))
    const before = provider.requests.length
    const response = await fetch(url, {
      method: sent.method,
      headers: headers.map(([name, value]): [string, string] => [name, value]),
      signal: answer.disconnected,
      ...(sent.method === 'GET' || sent.method === 'HEAD'
        ? {}
        : { body: new Uint8Array(sent.body) }),
    })
    const kept = ['content-type', 'mcp-session-id', 'www-authenticate', 'allow']
    answer.head(
      response.status,
      Object.fromEntries(
        kept
          .flatMap(name => [[name, response.headers.get(name)]])
          .filter(([, value]) => value !== null) as [string, string][],
      ),
    )
    if (modelPath.test(sent.url)) {
      const got = provider.requests.slice(before).find(one => sameTail(one, sent))
      calls.push({ sent, got, status: response.headers.get('x-memory-status') })
    }
    for await (const bytes of response.body ?? []) await answer.write(bytes)
    answer.end()
  })
  return {
    origin: gate.origin,
    takeCalls() {
      const taken = calls
      calls = []
      return taken
    },
    goDirect: () => void (isDirect = true),
  }
}

/** A call and its forwarded form end alike: blocks stand before the end. */
const sameTail = (one: RecordedRequest, other: RecordedRequest): boolean =>
  one.url.endsWith(other.url.replace(/^\/v1(?:beta)?/, '')) &&
  one.body.subarray(-60).equals(other.body.subarray(-60))

type Json = unknown

const isBlock = (part: Json): boolean =>
  Object.values(part ?? {}).some(
    value => typeof value === 'string' && value.startsWith('<memory_context>'),
  )

/** The body without the blocks of the service: parts, or messages of nothing else. */
export function withoutBlocks(body: Json): Json {
  if (Array.isArray(body)) {
    return body.filter(part => !isBlock(part) && !isBlockAlone(part)).map(withoutBlocks)
  }
  if (typeof body !== 'object' || body === null) return body
  return Object.fromEntries(
    Object.entries(body).map(([name, value]) => [name, withoutBlocks(value)]),
  )
}

const isBlockAlone = (message: Json): boolean => {
  const { content, parts } = (message ?? {}) as { content?: Json; parts?: Json }
  return [content, parts].some(
    list => Array.isArray(list) && list.length > 0 && list.every(isBlock),
  )
}

/** How many bytes two requests begin with. */
export function commonBytes(one: Buffer, other: Buffer): number {
  const end = Math.min(one.length, other.length)
  let at = 0
  while (at < end && one[at] === other[at]) at++
  return at
}
