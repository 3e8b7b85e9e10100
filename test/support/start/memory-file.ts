import type { Backend } from '#shared/backend.ts'
import type { Caller } from '#shared/access/caller.ts'
import type { ExportedLine } from '#shared/domain/file-types.ts'
import { mintId } from '#shared/core/ids.ts'
import {
  buildKey,
  createTestClient,
  type TestAnswer,
  type TestClient,
} from '#test/support/start/api.ts'
import { resolveCaller } from '#test/support/start/insert-memories.ts'

/** A client of one Memory Key, with the caller it authenticates. */
export type KeyedClient = TestClient & { key: string; caller(): Promise<Caller> }

/** A client with a new key for the API of `service` at `base`, in a new account unless an email names one. */
export async function createKeyedClient(
  service: Backend,
  base: string,
  email?: string,
): Promise<KeyedClient> {
  const key = await buildKey(service, email)
  return { ...createTestClient(base, key), key, caller: () => resolveCaller(service, key) }
}

/** NDJSON without a last newline. */
export const fileOf = (lines: readonly object[]): string =>
  lines.map(line => JSON.stringify(line)).join('\n')

const ndjson = { 'content-type': 'application/x-ndjson' }

/** Sends a file to `POST /v1/memory/upload`. */
export const uploadFile = (
  client: TestClient,
  body: string | Uint8Array | readonly object[],
  headers: Record<string, string> = {},
): Promise<TestAnswer> =>
  client.send('POST', '/v1/memory/upload', {
    body: Array.isArray(body) ? fileOf(body) : body,
    headers: { ...ndjson, ...headers },
  })

/** Sends a file to `POST /v1/memory/import`. */
export const importFile = (
  client: TestClient,
  lines: readonly object[] | string,
  query = '',
  headers: Record<string, string> = {},
): Promise<TestAnswer> =>
  client.send('POST', `/v1/memory/import${query}`, {
    body: typeof lines === 'string' ? lines : fileOf(lines),
    headers: { ...ndjson, ...headers },
  })

/**
 * The lines of `GET /v1/memory/export`.
 *
 * @throws when the answer is not 200.
 */
export async function exportLines(
  client: TestClient,
  query = '',
  headers: Record<string, string> = {},
): Promise<ExportedLine[]> {
  const { status, body } = await client.get(`/v1/memory/export${query}`, headers)
  if (status !== 200) throw new Error(`export answered ${status}`)
  return body as ExportedLine[]
}

/** The time of the first line of a story, in ms since 1970. */
export const storyStart = Date.parse('2026-03-01T10:00:00Z')
const DAY_MS = 24 * 3600 * 1000

/** Lines of a vault with all kinds of memories: 6 raw (2 consolidated), a session, two tiers of reflections. */
export function storyLines(): ExportedLine[] {
  const ids = Array.from({ length: 9 }, () => mintId())
  const [batch, high] = [mintId(), mintId()]
  const raw = (n: number, content: string, rest: object = {}): ExportedLine => ({
    id: ids[n]!,
    tier: 1,
    role: n % 2 === 0 ? 'user' : 'assistant',
    content,
    timestamp: storyStart + n * DAY_MS,
    session_id: null,
    consolidated: false,
    ...rest,
  })
  const covers = { from: '2026-03-01T10:00:00.000Z', to: '2026-03-02T10:00:00.000Z' }
  return [
    raw(0, 'The boiler was serviced by Ms Brandt', {
      consolidated: true,
      consolidated_by: [batch],
    }),
    raw(1, 'Noted: Ms Brandt serviced it', { consolidated: true, consolidated_by: [batch] }),
    raw(2, 'We adopted a grey kitten called Ada', { name: 'Mira' }),
    raw(3, 'Ada is a lovely name for a kitten'),
    raw(4, 'The ferry to Naxos leaves at nine', {
      origin_key: 'mk_abc…wxyz',
      origin_id: mintId(),
      transferred_at: '2026-04-01T00:00:00.000Z',
    }),
    {
      ...raw(6, 'The household has its heating serviced by Ms Brandt every spring'),
      tier: 2,
      role: 'system',
      importance: 6,
      covers,
      batch_id: batch,
      sources: [ids[0]!, ids[1]!],
      consolidated: true,
      consolidated_by: [high],
    },
    {
      ...raw(7, 'They look after their house with care'),
      tier: 3,
      role: 'system',
      importance: 9,
      covers,
      batch_id: high,
      sources: [ids[6]!],
    },
    raw(5, 'In this session we plan a trip to Lisbon', { session_id: 'trip' }),
    raw(8, 'Lisbon in May, then', { session_id: 'trip' }),
  ]
}
