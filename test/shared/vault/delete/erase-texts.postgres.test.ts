import t from 'tap'
import { mintId } from '#shared/core/ids.ts'
import { eraseTextsOutsideMemories } from '#shared/vault/delete/erase-texts.postgres.ts'
import { buildKey, createTestClient } from '#test/support/start/api.ts'
import { resolveCaller, insertMemories } from '#test/support/start/insert-memories.ts'
import { countOpenJobs } from '#test/support/checks/observe-jobs.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, base } = await startService(t)
const { query } = backend.postgres

const word = 'quokka'

/** Every table of the service, with the rows that hold the word. */
async function tablesWith(text: string): Promise<Record<string, number>> {
  const { rows: tables } = await query<{ name: string }>(
    `select quote_ident(schemaname) || '.' || quote_ident(tablename) as name from pg_tables
     where schemaname in ('public', 'pgboss')`,
  )
  const found: Record<string, number> = {}
  for (const { name } of tables) {
    const { rows } = await query<{ n: number }>(
      `select count(*)::int n from ${name} as r where r::text ilike '%' || $1 || '%'`,
      [text],
    )
    if (rows[0]!.n > 0) found[name] = rows[0]!.n
  }
  return found
}

t.test('nothing a vault stored or was asked is in Postgres once it is cleared', async t => {
  const [key, other] = [await buildKey(backend), await buildKey(backend)]
  const client = createTestClient(base, key)
  const again = (n: number) => ({ 'idempotency-key': `key ${n}` })
  const told = { messages: [{ role: 'user', content: `the ${word} is asleep` }] }
  await client.post('/v1/memory/ingest?wait=true', told, again(1))
  await client.post('/v1/memory/ingest?wait=true', { ...told, session_id: `${word} session` })
  const graft = { destination_key: other, queries: [`where is the ${word}`], threshold: 0.1 }
  t.match((await client.post('/v1/memory/graft', graft, again(2))).body, { copied: 1 })
  t.match((await client.post('/v1/memory/graft', { ...graft, dry_run: true }, again(3))).body, {
    count: 1,
  })
  await client.post('/v1/memory/search', { query: word, limit: 1 }, again(4))
  await client.send('POST', '/v1/memory/upload', {
    headers: { 'content-type': 'application/x-ndjson', 'x-session-id': `${word} session` },
    body: `{"content":"one ${word}"}\n{"content":"x","${word}":1}\n`,
  })
  // A job that runs while its vault is cleared keeps its words for a minute after its end.
  const allEnded = () =>
    waitUntil('every job has ended', async () => (await countOpenJobs(backend)) === 0)
  await allEnded()
  await client.send('DELETE', '/v1/memory', { headers: { 'x-session-id': `${word} session` } })
  t.ok(Object.keys(await tablesWith(word)).length > 0)

  t.match(await client.send('DELETE', '/v1/memory'), { status: 200 })
  // A job ends after what it does, and is answered.
  await allEnded()
  // The finished job that cleared the session names it for a minute more.
  await query(`delete from pgboss.job where name = 'clear' and state = 'completed'`)
  t.same(await tablesWith(word), {})
  const { account } = await resolveCaller(backend, key)
  const { rows } = await query(
    `select count(*)::int n from usage_events where account = $1 and memory_tokens > 0`,
    [account],
  )
  t.ok(rows[0]!['n'] > 0, 'what was used stays billed')
  const { rows: answers } = await query<{ route: string }>(
    `select route from idempotency i join memory_keys k on k.hash = i.key_hash
     where k.vault = (select vault from memory_keys where account = $1)`,
    [account],
  )
  const routes = answers.map(({ route }) => route)
  t.same(routes, ['POST /v1/memory/ingest'])
  t.match((await createTestClient(base, other).get('/v1/memory/list')).body, {
    items: [{ text: `the ${word} is asleep` }],
  })
})

t.test('outcomes lose their texts', async t => {
  const key = await buildKey(backend)
  const { account, keyHash, scope } = await resolveCaller(backend, key)
  const { vault, epoch } = scope
  const store = async (kind: string, outcome: object): Promise<string> => {
    const id = mintId()
    await query(
      `insert into operations (id, account, vault, key_hash, kind, epoch, state, status, session, outcome)
       values ($1, $2, $3, $4, $5, $6, 'done', 200, $7, $8)`,
      [id, account, vault, keyHash, kind, epoch, `${word} session`, JSON.stringify(outcome)],
    )
    return id
  }
  const errors = [{ line: 2, error: `no ${word}` }]
  const ids = [
    await store('import', { kind: 'import', stored: 1, errors }),
    await store('graft', { kind: 'graft', copied: 1, queries: [word] }),
    await store('clear', { kind: 'clear', session: `${word} session`, deleted: 3 }),
  ]
  await eraseTextsOutsideMemories(query, { vault, upTo: epoch })
  t.same(await tablesWith(word), {})
  const { rows } = await query<{ outcome: object; session: string | null }>(
    'select outcome, session from operations where id = any($1::uuid[]) order by array_position($1, id)',
    [ids],
  )
  t.same(rows, [
    { outcome: { kind: 'import', stored: 1 }, session: null },
    { outcome: { kind: 'graft', copied: 1, queries: [] }, session: null },
    { outcome: { kind: 'clear', session: null, deleted: 3 }, session: null },
  ])
})

t.test('a deletion of single memories forgets previews of copies, not the copies', async t => {
  const [key, other] = [await buildKey(backend), await buildKey(backend)]
  const client = createTestClient(base, key)
  const [id] = await insertMemories(backend, key, [{ text: 'one numbat' }])
  const body = { destination_key: other }
  const copied = await client.post('/v1/memory/transfer', body, { 'idempotency-key': 'copy' })
  const preview = { ...body, dry_run: true }
  const headers = { 'idempotency-key': 'preview' }
  t.match((await client.post('/v1/memory/transfer', preview, headers)).body, { count: 1 })
  await client.post('/v1/memory/delete-ids', { ids: [id] })
  t.match((await client.post('/v1/memory/transfer', preview, headers)).body, { count: 0 })
  const replayed = await client.post('/v1/memory/transfer', body, { 'idempotency-key': 'copy' })
  t.same(replayed.body, copied.body)
})
