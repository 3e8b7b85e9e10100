import t from 'tap'
import type { ExportedLine } from '#shared/domain/file-types.ts'
import { mintId } from '#shared/core/ids.ts'
import { raiseEpoch, raiseSessionEpoch } from '#shared/vault/base/vaults.postgres.ts'
import { countTokens } from '#shared/core/tokens.ts'
import type { TestAnswer } from '#test/support/start/api.ts'
import {
  exportLines,
  fileOf,
  importFile,
  storyLines,
  storyStart,
} from '#test/support/start/memory-file.ts'
import { tombstoneDocuments } from '#test/support/checks/alter.ts'
import { billedEventsOfVault, countRows } from '#test/support/checks/observe.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, newClient } = await startService(t, { jobs: ['import'] })
const { newClient: newClientElsewhere } = await startService(t, { jobs: ['import'] })

t.test('200: what is imported is exported again, line for line, in order', async t => {
  const client = await newClient()
  const lines = storyLines()
  const { status, body } = await importFile(client, lines)
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
  t.same(await exportLines(client), lines)
})

t.test(
  '200: a round trip to another service: same ids, same list, same search, same lineage',
  async t => {
    const client = await newClient()
    const away = await newClientElsewhere()
    await importFile(client, storyLines())
    const whole = await exportLines(client, '?vectors=true')
    t.ok(whole.every(({ vector }) => vector?.model === 'local'))
    t.match((await importFile(away, whole)).body, { status: 'complete', imported: 9 })
    t.same(await exportLines(away, '?vectors=true'), whole, 'line for line, to the last digit')

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
  const lines = storyLines()
  await importFile(client, lines)
  t.match((await importFile(copy, await exportLines(client))).body, { imported: 9, skipped: 0 })
  const copied = await exportLines(copy)

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
  t.same(await exportLines(client), lines, 'the original is as it was')
  t.match((await importFile(copy, lines)).body, { imported: 0, skipped: 9 }, 'again adds nothing')
  const query = { query: 'heating kitten ferry', limit: 20 }
  const found = await client.post('/v1/memory/search', query)
  const again = await copy.post('/v1/memory/search', query)
  const withoutIds = (answer: TestAnswer) =>
    answer.body.memories.map(({ id, ...rest }: { id: string }) => (t.ok(id), rest))
  t.same(withoutIds(again), withoutIds(found))
})

t.test('200: lines in any order; sources in an earlier file', async t => {
  const [client, copy, parts] = [await newClient(), await newClient(), await newClient()]
  const lines = storyLines()
  await importFile(client, lines)
  await importFile(copy, lines.toReversed())
  const copied = await exportLines(copy)
  const raws = new Set(copied.filter(({ tier }) => tier === 1).map(({ id }) => id))
  t.ok(copied.find(({ tier }) => tier === 2)!.sources!.every(id => raws.has(id)))

  await importFile(
    parts,
    lines.filter(({ tier }) => tier === 1),
  )
  await importFile(
    parts,
    lines.filter(({ tier }) => tier > 1),
  )
  const shape = (all: ExportedLine[]) =>
    all.map(({ content, sources }) => [content, sources?.length])
  t.same(shape(await exportLines(parts)), shape(lines))
  const known = new Set((await exportLines(parts)).map(({ id }) => id))
  t.ok((await exportLines(parts)).every(({ sources = [] }) => sources.every(id => known.has(id))))
})

t.test('200: the debt is that of the lines, and only what is stored is billed', async t => {
  const client = await newClient()
  const lines = storyLines()
  const { body } = await importFile(client, lines)
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
  await importFile(client, lines)
  const bills = await billedEventsOfVault(backend, scope.vault)
  const tokens = lines.reduce((sum, { content }) => sum + countTokens(content), 0)
  t.same(
    bills.map(({ id, kind, memoryTokens }) => ({ id, kind, memoryTokens })),
    [{ id: body.operation_id, kind: 'import', memoryTokens: tokens }],
  )
})

t.test('200: skip leaves what is there, replace puts the line in its place', async t => {
  const client = await newClient()
  const lines = storyLines()
  await importFile(client, lines)
  const [boiler, noted, kitten] = lines as [ExportedLine, ExportedLine, ExportedLine]
  const changed = [
    {
      ...kitten,
      content: 'We adopted a black kitten called Bo',
      name: undefined,
      timestamp: storyStart + 1,
    },
    { ...boiler, consolidated: false, consolidated_by: undefined },
    { ...noted, session_id: 'trip' },
    { ...kitten, id: mintId(), content: 'Something new' },
  ]
  t.match((await importFile(client, changed.slice(0, 3))).body, { skipped: 3, replaced: 0 })
  t.same(await exportLines(client), lines)

  const { rawUnits } = (await client.caller()).keyRow
  const { body } = await importFile(client, changed, '?on_conflict=replace')
  t.match(body, {
    status: 'complete',
    imported: 1,
    replaced: 3,
    skipped: 0,
    message: '1 memory imported, 3 replaced',
  })
  const now = await exportLines(client)
  const byId = (id: string) => now.find(line => line.id === id)
  t.match(byId(kitten.id), { content: /black/, timestamp: storyStart + 1 })
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
  const lines = storyLines()
  await importFile(client, lines.slice(0, 4))
  const file = [...lines, lines[0]!]
  for (const conflict of ['skip', 'replace']) {
    const query = `?on_conflict=${conflict}`
    const dry = await importFile(client, `${fileOf(file)}\nnonsense`, `${query}&dry_run=true`)
    t.equal(dry.status, 200)
    t.match(dry.body, { dry_run: true, status: 'partial', failed: 1, message: /would be imported/ })
    t.notOk('operation_id' in dry.body)
    t.equal((await exportLines(client)).length, 4)
    if (conflict === 'skip') continue
    const { body } = await importFile(client, `${fileOf(file)}\nnonsense`, query)
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
  t.equal((await importFile(empty, '\n', '?dry_run=true')).status, 400)
  t.equal(await countRows(backend, 'long_operations'), 0)
})

t.test('200: what was deleted or cleared comes back when its file is imported again', async t => {
  const client = await newClient()
  const { vault } = (await client.caller()).scope
  const lines = storyLines()
  await importFile(client, lines)
  const texts = async () => (await exportLines(client)).map(({ content }) => content)
  const all = await texts()

  await tombstoneDocuments(backend, vault, [lines[2]!.id])
  t.match((await importFile(client, lines)).body, { imported: 1, skipped: 8 })
  t.same((await texts()).sort(), [...all].sort())
  const again = (await exportLines(client)).find(({ content }) => content === lines[2]!.content)!
  t.not(again.id, lines[2]!.id, 'a tombstone keeps its id')
  t.match((await importFile(client, lines)).body, { imported: 0, skipped: 9 })

  await backend.postgres.transaction(tx => raiseSessionEpoch(tx, vault, 'trip'))
  t.match((await importFile(client, lines)).body, { imported: 2, skipped: 7 })
  await backend.postgres.transaction(tx => raiseEpoch(tx, vault))
  t.match((await importFile(client, lines)).body, { imported: 9, skipped: 0 })
  t.same((await texts()).sort(), [...all].sort())
})
