import t from 'tap'
import type { Backend } from '#shared/backend.ts'
import type { ExportedLine } from '#shared/domain/file-types.ts'
import { mintId } from '#shared/core/ids.ts'
import { authenticateMemoryKey, extractMemoryKey, type Caller } from '#shared/access/caller.ts'
import { findKey } from '#shared/access/memory-keys.postgres.ts'
import { raiseEpoch, raiseSessionEpoch } from '#shared/vault/base/vaults.postgres.ts'
import { countTokens } from '#shared/core/tokens.ts'
import {
  buildKey,
  createTestClient,
  startTestApi,
  startJobWorkers,
  type TestAnswer,
  type TestClient,
} from '#test/support/api.ts'
import { createTestBackend } from '#test/support/backend.ts'
import { waitUntil } from '#test/support/wait-until.ts'

const backend = await createTestBackend(t)
await startJobWorkers(backend, 'ingest', 'import', 'upload')
const { base } = await startTestApi(t, backend)
const other = await createTestBackend(t)
await startJobWorkers(other, 'import')
const otherBase = (await startTestApi(t, other)).base

type Keyed = TestClient & { key: string; caller(): Promise<Caller> }

const clientAt = async (service: Backend, at: string): Promise<Keyed> => {
  const key = await buildKey(service)
  const presented = extractMemoryKey({
    memoryKey: key,
    authorization: undefined,
    apiKey: undefined,
  })
  const { postgres, config } = service
  return {
    ...createTestClient(at, key),
    key,
    caller: () =>
      authenticateMemoryKey(hash => findKey(postgres.query, hash), config.keyPepper, presented),
  }
}
const newClient = (): Promise<Keyed> => clientAt(backend, base)

const fileOf = (lines: readonly object[]): string =>
  lines.map(line => JSON.stringify(line)).join('\n')
const restore = (
  client: TestClient,
  lines: readonly object[] | string,
  query = '',
  headers: Record<string, string> = {},
): Promise<TestAnswer> =>
  client.send('POST', `/v1/memory/import${query}`, {
    body: typeof lines === 'string' ? lines : fileOf(lines),
    headers: { 'content-type': 'application/x-ndjson', ...headers },
  })
const exported = async (
  client: TestClient,
  query = '',
  headers: Record<string, string> = {},
): Promise<ExportedLine[]> => {
  const { status, body } = await client.get(`/v1/memory/export${query}`, headers)
  if (status !== 200) throw new Error(`export answered ${status}`)
  return body
}
const bury = (service: Backend, vault: string, ids: string[]) =>
  service.mongo.memories.updateMany({ vault: { $eq: vault }, _id: { $in: ids } }, [
    { $replaceRoot: { newRoot: { _id: '$_id', vault: '$vault', tomb_at: '$$NOW' } } },
  ])

const at = Date.parse('2026-03-01T10:00:00Z')
const day = 24 * 3600 * 1000

/** A vault of every kind of memory: 6 raw, of them two consolidated, a session, two tiers of reflection. */
function story(): ExportedLine[] {
  const ids = Array.from({ length: 9 }, () => mintId())
  const [batch, high] = [mintId(), mintId()]
  const raw = (n: number, content: string, rest: object = {}): ExportedLine => ({
    id: ids[n]!,
    tier: 1,
    role: n % 2 === 0 ? 'user' : 'assistant',
    content,
    timestamp: at + n * day,
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

t.test('200: what is imported is exported again, line for line, in order', async t => {
  const client = await newClient()
  const lines = story()
  const { status, body } = await restore(client, lines)
  t.equal(status, 200)
  t.match(body, {
    dry_run: false,
    status: 'complete',
    imported: 9,
    replaced: 0,
    skipped: 0,
    failed: 0,
    operation_id: String,
    message: '9 memories imported',
  })
  t.same(await exported(client), lines)
})

t.test(
  '200: a round trip to another service: same ids, same list, same search, same lineage',
  async t => {
    const client = await newClient()
    const away = await clientAt(other, otherBase)
    await restore(client, story())
    const whole = await exported(client, '?vectors=true')
    t.ok(whole.every(({ vector }) => vector?.model === 'local'))
    t.match((await restore(away, whole)).body, { status: 'complete', imported: 9 })
    t.same(await exported(away, '?vectors=true'), whole, 'line for line, to the last digit')

    for (const [query, headers] of [
      ['who looks after the heating', {}],
      ['kitten', {}],
      ['trip', { 'x-session-id': 'trip' }],
    ] as [string, Record<string, string>][]) {
      const [one, two] = await Promise.all(
        [client, away].map(at => at.post('/v1/memory/search', { query, limit: 20 }, headers)),
      )
      t.ok(one!.body.memories.length > 0)
      t.same(two!.body.memories, one!.body.memories)
      t.same(two!.body.reflection, one!.body.reflection)
    }
  },
)

t.test('200: beside its original a vault gets ids of its own, and lineage follows', async t => {
  const [client, copy] = [await newClient(), await newClient()]
  const lines = story()
  await restore(client, lines)
  t.match((await restore(copy, await exported(client))).body, { imported: 9, skipped: 0 })
  const copied = await exported(copy)

  const ids = new Map(lines.map(({ id }, index) => [id, copied[index]!.id]))
  t.equal(new Set([...ids.keys(), ...ids.values()]).size, 18, 'no id is in both')
  t.same(
    copied,
    lines.map(line => ({
      ...line,
      id: ids.get(line.id)!,
      ...(line.sources && { sources: line.sources.map(id => ids.get(id)!) }),
    })),
  )
  t.same(await exported(client), lines, 'the original is as it was')
  t.match((await restore(copy, lines)).body, { imported: 0, skipped: 9 }, 'again adds nothing')
  const query = { query: 'heating kitten ferry', limit: 20 }
  const found = await client.post('/v1/memory/search', query)
  const again = await copy.post('/v1/memory/search', query)
  const withoutIds = (answer: TestAnswer) =>
    answer.body.memories.map(({ id, ...rest }: { id: string }) => (t.ok(id), rest))
  t.same(withoutIds(again), withoutIds(found))
})

t.test('200: lines in any order; sources in an earlier file', async t => {
  const [client, copy, parts] = [await newClient(), await newClient(), await newClient()]
  const lines = story()
  await restore(client, lines)
  await restore(copy, lines.toReversed())
  const copied = await exported(copy)
  const raws = new Set(copied.filter(({ tier }) => tier === 1).map(({ id }) => id))
  t.ok(copied.find(({ tier }) => tier === 2)!.sources!.every(id => raws.has(id)))

  await restore(
    parts,
    lines.filter(({ tier }) => tier === 1),
  )
  await restore(
    parts,
    lines.filter(({ tier }) => tier > 1),
  )
  const shape = (all: ExportedLine[]) =>
    all.map(({ content, sources }) => [content, sources?.length])
  t.same(shape(await exported(parts)), shape(lines))
  const known = new Set((await exported(parts)).map(({ id }) => id))
  t.ok((await exported(parts)).every(({ sources = [] }) => sources.every(id => known.has(id))))
})

t.test('200: the debt is that of the lines, and only what is stored is billed', async t => {
  const client = await newClient()
  const lines = story()
  const { body } = await restore(client, lines)
  const { keyRow, scope } = await client.caller()
  const waiting = lines.filter(
    ({ tier, session_id, consolidated }) => tier === 1 && session_id === null && !consolidated,
  )
  t.equal(keyRow.rawUnits, waiting.length)
  t.equal(
    keyRow.rawTokens,
    waiting.reduce((sum, { content }) => sum + countTokens(content), 0),
  )
  t.equal(keyRow.tier2Count, 0, 'the reflection is covered by a higher one')
  await restore(client, lines)
  const { rows } = await backend.postgres.query(
    'select id, kind, memory_tokens from usage_events where vault = $1',
    [scope.vault],
  )
  const tokens = lines.reduce((sum, { content }) => sum + countTokens(content), 0)
  t.same(rows, [{ id: body.operation_id, kind: 'import', memory_tokens: tokens }])
})

t.test('200: skip leaves what is there, replace puts the line in its place', async t => {
  const client = await newClient()
  const lines = story()
  await restore(client, lines)
  const [boiler, noted, kitten] = lines as [ExportedLine, ExportedLine, ExportedLine]
  const changed = [
    {
      ...kitten,
      content: 'We adopted a black kitten called Bo',
      name: undefined,
      timestamp: at + 1,
    },
    { ...boiler, consolidated: false, consolidated_by: undefined },
    { ...noted, session_id: 'trip' },
    { ...kitten, id: mintId(), content: 'Something new' },
  ]
  t.match((await restore(client, changed.slice(0, 3))).body, { skipped: 3, replaced: 0 })
  t.same(await exported(client), lines)

  const { rawUnits } = (await client.caller()).keyRow
  const { body } = await restore(client, changed, '?on_conflict=replace')
  t.match(body, {
    status: 'complete',
    imported: 1,
    replaced: 3,
    skipped: 0,
    message: '1 memory imported, 3 replaced',
  })
  const now = await exported(client)
  const byId = (id: string) => now.find(line => line.id === id)
  t.match(byId(kitten.id), { content: /black/, timestamp: at + 1 })
  t.notOk('name' in byId(kitten.id)!)
  t.notOk('consolidated_by' in byId(boiler.id)!)
  t.equal(byId(noted.id)!.session_id, 'trip')
  t.equal(
    (await client.caller()).keyRow.rawUnits,
    rawUnits + 2,
    'the boiler again, and the new one',
  )

  const kittens = await client.post('/v1/memory/search', { query: 'kitten adopted', limit: 3 })
  t.match(kittens.body.memories[0], { content: /black/ })
  t.notMatch(JSON.stringify(kittens.body.memories), /grey/)
  const gone = await client.post('/v1/memory/search', { query: 'noted Brandt serviced', limit: 20 })
  t.notMatch(JSON.stringify(gone.body.memories), /Noted: Ms Brandt/)
  const moved = await client.post(
    '/v1/memory/search',
    { query: 'noted Brandt serviced', limit: 20 },
    { 'x-session-id': 'trip' },
  )
  t.match(moved.body.memories[0], { content: /Noted: Ms Brandt/ })
})

t.test('200: a dry run counts as the import will, and writes nothing', async t => {
  const [client, empty] = [await newClient(), await newClient()]
  const lines = story()
  await restore(client, lines.slice(0, 4))
  const file = [...lines, lines[0]!]
  for (const conflict of ['skip', 'replace']) {
    const query = `?on_conflict=${conflict}`
    const dry = await restore(client, `${fileOf(file)}\nnonsense`, `${query}&dry_run=true`)
    t.equal(dry.status, 200)
    t.match(dry.body, { dry_run: true, status: 'partial', failed: 1, message: /would be imported/ })
    t.notOk('operation_id' in dry.body)
    t.equal((await exported(client)).length, 4)
    if (conflict === 'skip') continue
    const { body } = await restore(client, `${fileOf(file)}\nnonsense`, query)
    const counts = ({ imported, replaced, skipped, failed, errors }: typeof body) => ({
      imported,
      replaced,
      skipped,
      failed,
      errors,
    })
    t.same(counts(body), counts(dry.body))
    t.match(body, { imported: 5, replaced: 4, skipped: 1, failed: 1 })
  }
  t.equal((await restore(empty, '\n', '?dry_run=true')).status, 400)
  const { rows } = await backend.postgres.query('select 1 from bulk_files')
  t.same(rows, [])
})

t.test('200: what was deleted or cleared comes back when its file is imported again', async t => {
  const client = await newClient()
  const { vault } = (await client.caller()).scope
  const lines = story()
  await restore(client, lines)
  const texts = async () => (await exported(client)).map(({ content }) => content)
  const all = await texts()

  await bury(backend, vault, [lines[2]!.id])
  t.match((await restore(client, lines)).body, { imported: 1, skipped: 8 })
  t.same((await texts()).sort(), [...all].sort())
  const again = (await exported(client)).find(({ content }) => content === lines[2]!.content)!
  t.not(again.id, lines[2]!.id, 'a tombstone keeps its id')
  t.match((await restore(client, lines)).body, { imported: 0, skipped: 9 })

  await backend.postgres.transaction(tx => raiseSessionEpoch(tx, vault, 'trip'))
  t.match((await restore(client, lines)).body, { imported: 2, skipped: 7 })
  await backend.postgres.transaction(tx => raiseEpoch(tx, vault))
  t.match((await restore(client, lines)).body, { imported: 9, skipped: 0 })
  t.same((await texts()).sort(), [...all].sort())
})

t.test('200: a vector of another space, length or size is made anew', async t => {
  const client = await newClient()
  const [line] =
    (await restore(client, story().slice(2, 3)), await exported(client, '?vectors=true'))
  const { values } = line!.vector!
  const fresh = await newClient()
  const odd = [
    { model: 'openai/elsewhere', values },
    { model: 'local', values: values.slice(1) },
    { model: 'local', values: values.map(value => value * 2) },
    { model: 'local', values: values.map((_, index) => (index === 0 ? 1 : 0)) },
  ]
  await restore(
    fresh,
    odd.map((vector, n) => ({ ...line, id: mintId(), timestamp: at + n, vector })),
  )
  const got = (await exported(fresh, '?vectors=true')).map(({ vector }) => vector!.values)
  t.same(got.slice(0, 3), [values, values, values])
  t.same(got[3], odd[3]!.values, 'one that fits is kept as it is')
})

t.test('200: every faulty line is named, the others are imported', async t => {
  const client = await newClient()
  const [raw, , , , , reflection] = story()
  const { id: _, ...idless } = raw!
  const faulty: [object, RegExp][] = [
    [idless, /id is required/],
    [{ ...raw, id: 'x' }, /id must be a UUID/],
    [{ ...raw, tier: 4 }, /tier/],
    [{ ...raw, content: ' ' }, /blank/],
    [{ ...raw, timestamp: 1.5 }, /timestamp/],
    [{ ...raw, importance: 3 }, /importance belongs to reflections/],
    [{ ...raw, sources: [] }, /sources belongs to reflections/],
    [{ ...raw, session_id: '' }, /session_id/],
    [{ ...raw, colour: 'red' }, /unknown field colour/],
    [{ ...reflection, importance: undefined }, /importance is required on tier 2/],
    [{ ...reflection, importance: 11 }, /importance/],
    [{ ...reflection, session_id: 'trip' }, /session_id must be null/],
    [{ ...reflection, covers: { from: 'x', to: 'y' } }, /covers/],
    [{ ...raw, vector: { model: 'local', values: [] } }, /vector/],
  ]
  const lines = faulty.map(([line]) => line)
  const { status, body } = await restore(client, [...lines, raw!])
  t.equal(status, 200)
  t.match(body, { status: 'partial', imported: 1, failed: faulty.length })
  for (const [index, [, message]] of faulty.entries()) {
    t.equal(body.errors[index].line, index + 1)
    t.match(body.errors[index].error, message)
  }
})

t.test('200: hundreds of lines go in chunks, tier by tier, with their progress', async t => {
  const client = await newClient()
  const ids = Array.from({ length: 330 }, () => mintId())
  const raw = ids.map((id, n) => ({
    id,
    tier: 1,
    role: 'user',
    content: `memory number ${n}`,
    timestamp: at + n,
    session_id: null,
  }))
  const reflection = {
    ...raw[0],
    id: mintId(),
    tier: 2,
    content: 'There were many',
    importance: 5,
    sources: ids,
  }
  const { status, body } = await restore(client, [reflection, ...raw], '', {
    prefer: 'respond-async',
  })
  t.equal(status, 202)
  const operation = async () => (await client.get(`/v1/operations/${body.operation_id}`)).body
  await waitUntil('imported', async () => (await operation()).state === 'done')
  t.match(await operation(), {
    kind: 'import',
    progress: { done: 331, total: 331 },
    outcome: { status: 200, body: { imported: 331, status: 'complete' } },
  })
  t.equal((await exported(client)).length, 331)
  t.same((await exported(client)).at(-1)!.sources, ids)
})

t.test('200: an Idempotency-Key answers the first answer again', async t => {
  const client = await newClient()
  const header = { 'idempotency-key': 'first' }
  const lines = story()
  const first = await restore(client, lines, '', header)
  t.same((await restore(client, lines, '', header)).body, first.body)
  t.equal((await restore(client, lines, '?on_conflict=replace', header)).status, 400)
})

t.test('400: no lines, odd parameters, an unknown embedding model', async t => {
  const client = await newClient()
  t.equal((await restore(client, '')).status, 400)
  t.equal((await restore(client, story(), '?on_conflict=merge')).status, 400)
  t.equal((await restore(client, story(), '?dry_run=perhaps')).status, 400)
  t.equal((await restore(client, story(), '', { 'x-embedding-model': 'x' })).status, 400)
})

t.test('401, 402, 403: no key, no card, a key that may not store', async t => {
  const client = await newClient()
  t.equal((await restore(createTestClient(base), story())).status, 401)
  const reading = { authorization: `Bearer ${client.key}:read` }
  t.equal((await restore(client, story(), '', reading)).status, 403)
  await backend.postgres.query('update accounts set payment_method = null where id = $1', [
    (await client.caller()).account,
  ])
  t.equal((await restore(client, story())).status, 402)
})

t.test('413, 415: too many lines, another type', async t => {
  const client = await newClient()
  const many = Array.from({ length: 10_001 }, () => '{}').join('\n')
  t.equal((await restore(client, many)).status, 413)
  t.equal((await restore(client, many, '?dry_run=true')).status, 413)
  t.equal((await restore(client, story(), '', { 'content-type': 'application/json' })).status, 415)
})
