import type { Backend } from '#shared/backend.ts'
import {
  buildKey,
  createTestClient,
  type TestAnswer,
  type TestClient,
} from '#test/support/start/api.ts'
import { resolveCaller } from '#test/support/start/insert-memories.ts'

export type Vault = TestClient & { vault: string; key: string }

/** A client with an empty vault in a new account. */
export async function buildVault(backend: Backend, base: string): Promise<Vault> {
  const key = await buildKey(backend)
  const { scope } = await resolveCaller(backend, key)
  return { ...createTestClient(base, key), vault: scope.vault, key }
}

/** Stores each text as an exchange, one per day starting in 2024, and waits until all are stored. */
export async function ingestTexts(
  { post }: TestClient,
  texts: readonly string[],
  { from = '2024-01-01T09:00:00Z', session }: { from?: string; session?: string } = {},
): Promise<void> {
  const start = Date.parse(from)
  const messages = texts.map((content, day) => ({
    role: 'user',
    content,
    timestamp: start + day * 24 * 3600 * 1000,
  }))
  for (let start = 0; start < messages.length; start += 500) {
    const some = messages.slice(start, start + 500)
    const { status } = await post('/v1/memory/ingest?wait=true', {
      messages: some,
      ...(session && { session_id: session }),
    })
    if (status !== 200) throw new Error(`ingest answered ${status}`)
  }
}

export const checkOut = (
  { post }: TestClient,
  body: object = { tier: 1 },
  headers: Record<string, string> = {},
): Promise<TestAnswer> => post('/v1/memory/consolidate/checkout', body, headers)

export const commit = (
  { post }: TestClient,
  batch: string,
  entries: readonly object[],
  headers: Record<string, string> = {},
): Promise<TestAnswer> =>
  post('/v1/memory/consolidate/commit', { batch_id: batch, entries }, headers)

/** Expires the lease of a batch, by the clock of the database. */
export async function expireLease({ postgres }: Backend, batch: string): Promise<void> {
  await postgres.query(
    `update leases set expires_at = now() - interval '1 second' where batch = $1`,
    [batch],
  )
}

/** Usage events of one kind in a vault, oldest first. */
export async function readUsageEvents(
  { postgres }: Backend,
  vault: string,
  kind: string,
): Promise<{ tokens: number; session: string | null }[]> {
  const { rows } = await postgres.query<{ tokens: number; session: string | null }>(
    `select memory_tokens as tokens, session from usage_events
     where vault = $1 and kind = $2 order by at, id`,
    [vault, kind],
  )
  return rows
}
