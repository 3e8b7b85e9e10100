import t from 'tap'
import { mintId } from '#shared/core/ids.ts'
import { exportLines, importFile, storyLines, storyStart } from '#test/support/start/memory-file.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { setPaymentMethod } from '#test/support/checks/alter.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, newClient } = await startService(t, { jobs: ['import'] })

t.test('200: a vector of another space, length or size is made anew', async t => {
  const client = await newClient()
  const [line] =
    (await importFile(client, storyLines().slice(2, 3)), await exportLines(client, '?vectors=true'))
  const { values } = line!.vector!
  const fresh = await newClient()
  const odd = [
    { model: 'openai/elsewhere', values },
    { model: 'local', values: values.slice(1) },
    { model: 'local', values: values.map(value => value * 2) },
    { model: 'local', space: 'local_v0', values: values.map((_, index) => (index === 1 ? 1 : 0)) },
    { model: 'local', values: values.map((_, index) => (index === 0 ? 1 : 0)) },
  ]
  await importFile(
    fresh,
    odd.map((vector, n) => ({ ...line, id: mintId(), timestamp: storyStart + n, vector })),
  )
  const got = (await exportLines(fresh, '?vectors=true')).map(({ vector }) => vector!.values)
  t.same(got.slice(0, 4), [values, values, values, values])
  t.same(got[4], odd[4]!.values, 'one that fits is kept as it is')
})

t.test(
  'a line that would take a gigabyte to hold is faulty, and its neighbours are stored',
  async t => {
    const client = await newClient()
    const [good] = storyLines()
    const lines = ['['.repeat(7_000_000), `[${'{},'.repeat(120_000)}{}]`, JSON.stringify(good)]
    const { body } = await client.send('POST', '/v1/memory/import?dry_run=true', {
      body: lines.join('\n'),
      headers: { 'content-type': 'application/x-ndjson' },
    })
    t.match(body, { imported: 1, failed: 2 })
    t.match(body.errors, [
      { line: 1, error: /^the line nests deeper than 64 levels/ },
      { line: 2, error: /^the line holds more than 100000 objects and lists/ },
    ])
  },
)

t.test('200: every faulty line is named, the others are imported', async t => {
  const client = await newClient()
  const [raw, , , , , reflection] = storyLines()
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
    [{ ...raw, importanc: 3 }, /unknown field importanc/],
    [{ ...reflection, importance: undefined }, /importance is required on tier 2/],
    [{ ...reflection, importance: 11 }, /importance/],
    [{ ...reflection, session_id: 'trip' }, /session_id must be null/],
    [{ ...reflection, covers: { from: 'x', to: 'y' } }, /covers/],
    [{ ...raw, vector: { model: 'local', values: [] } }, /vector/],
  ]
  const lines = faulty.map(([line]) => line)
  const { status, body } = await importFile(client, [...lines, raw!])
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
    timestamp: storyStart + n,
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
  const { status, body } = await importFile(client, [reflection, ...raw], '', {
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
  t.equal((await exportLines(client)).length, 331)
  t.same((await exportLines(client)).at(-1)!.sources, ids)
})

t.test('200: an Idempotency-Key answers the first answer again', async t => {
  const client = await newClient()
  const header = { 'idempotency-key': 'first' }
  const lines = storyLines()
  const first = await importFile(client, lines, '', header)
  t.same((await importFile(client, lines, '', header)).body, first.body)
  t.equal((await importFile(client, lines, '?on_conflict=replace', header)).status, 400)
})

t.test('400: no lines, an unknown embedding model', async t => {
  const client = await newClient()
  t.equal((await importFile(client, '')).status, 400)
  t.equal((await importFile(client, storyLines(), '', { 'x-embedding-model': 'x' })).status, 400)
})

t.test('402: no card', async t => {
  const client = await newClient()
  await setPaymentMethod(backend, (await client.caller()).account, null)
  const { status, body } = await importFile(client, storyLines())
  t.equal(status, 402)
  t.match(body, { error: /no card/, hint: /^Files need one/ })
  t.match(await importFile(client, storyLines(), '?dry_run=true'), {
    status: 200,
    body: { dry_run: true, status: 'complete' },
  })
})

t.test('400: lines of an upload say which endpoint takes them', async t => {
  const client = await newClient()
  const { body } = await importFile(client, '{"content":"x","role":"user"}\n{"id":"x"}')
  t.match(
    body.hint,
    /^line 1: .*POST \/v1\/memory\/upload.*; line 2: (tier is required|id must be)/,
  )
})

t.test('413: too many lines', async t => {
  const client = await newClient()
  const many = Array.from({ length: 10_001 }, () => '{}').join('\n')
  t.equal((await importFile(client, many)).status, 413)
  t.equal((await importFile(client, many, '?dry_run=true')).status, 413)
})
